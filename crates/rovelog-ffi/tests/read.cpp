// Reads every log that is named on the command line with classes that own the log and its streams.
// Prints the same lines as read.c.

#include <cstdint>
#include <iostream>
#include <memory>
#include <rovelog.h>
#include <stdexcept>

struct CloseLog {
  void operator()(RovelogLog *log) const { rovelog_close(log); }
};
using Log = std::unique_ptr<RovelogLog, CloseLog>;

// A structure of the Arrow C interfaces that is released when it leaves its scope.
template <typename T> struct Released : T {
  Released() : T{} {}
  Released(const Released &) = delete;
  ~Released() {
    if (this->release != nullptr) this->release(this);
  }
};

static void check(RovelogStatus status) {
  if (status != ROVELOG_STATUS_OK) throw std::runtime_error(rovelog_last_error_message());
}

static void read_stream(Released<ArrowArrayStream> &stream) {
  auto check = [&](int error) {
    if (error != 0) throw std::runtime_error(stream.get_last_error(&stream));
  };
  Released<ArrowSchema> schema;
  check(stream.get_schema(&stream, &schema));
  std::uint64_t rows = 0, sum = 0;
  for (;;) {
    Released<ArrowArray> batch;
    check(stream.get_next(&stream, &batch));
    if (batch.release == nullptr) break;
    auto times = static_cast<const std::int64_t *>(batch.children[0]->buffers[1]);
    for (std::int64_t row = 0; row < batch.length; row++) {
      sum += static_cast<std::uint64_t>(times[batch.children[0]->offset + row]);
    }
    rows += static_cast<std::uint64_t>(batch.length);
  }
  std::cout << ' ' << rows << " rows, " << schema.n_children << " columns, times " << sum << '\n';
}

static void read_log(const char *path) {
  Log log(rovelog_open(path, 0));
  if (!log) {
    std::cout << "error " << rovelog_last_error_code() << '\n';
    return;
  }
  std::cout << rovelog_format(log.get()) << ' ' << rovelog_topic_count(log.get()) << " topics, "
            << rovelog_problem_count(log.get()) << " problems\n";
  for (std::size_t i = 0; i < rovelog_topic_count(log.get()); i++) {
    RovelogTopic topic;
    check(rovelog_topic(log.get(), i, &topic));
    std::cout << topic.name << " (" << topic.type_name << ") " << topic.records << " records,";
    Released<ArrowArrayStream> stream;
    if (rovelog_stream(log.get(), i, nullptr, &stream) == ROVELOG_STATUS_OK) {
      read_stream(stream);
    } else {
      std::cout << " error " << rovelog_last_error_code() << '\n';
    }
  }
  for (std::size_t i = 0; i < rovelog_problem_count(log.get()); i++) {
    RovelogProblem problem;
    check(rovelog_problem(log.get(), i, &problem));
    std::cout << problem.code << " severity " << problem.severity << " at " << problem.start << ".."
              << problem.end << ": " << problem.message << '\n';
  }
}

int main(int argc, char **argv) try {
  for (int i = 1; i < argc; i++) read_log(argv[i]);
} catch (const std::exception &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
