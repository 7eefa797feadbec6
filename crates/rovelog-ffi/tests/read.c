/* Reads every log that is named on the command line, and prints one line for each fact. The test
 * compares the lines with those that it writes by the Rust interface. */

#include <inttypes.h>
#include <rovelog.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

/* Prints the number of rows and columns of a stream, and the sum of its times. */
static void read_stream(struct ArrowArrayStream *stream) {
  struct ArrowSchema schema;
  struct ArrowArray batch;
  uint64_t rows = 0, sum = 0;
  if (stream->get_schema(stream, &schema) != 0) fail("get_schema", stream->get_last_error(stream));
  for (;;) {
    if (stream->get_next(stream, &batch) != 0) fail("get_next", stream->get_last_error(stream));
    if (batch.release == NULL) break;
    if (batch.n_children != schema.n_children) fail("batch", "other columns than the schema");
    const int64_t *times = batch.children[0]->buffers[1];
    for (int64_t row = 0; row < batch.length; row++) {
      sum += (uint64_t)times[batch.children[0]->offset + row];
    }
    rows += (uint64_t)batch.length;
    batch.release(&batch);
  }
  printf(" %" PRIu64 " rows, %" PRId64 " columns, times %" PRIu64 "\n", rows, schema.n_children, sum);
  schema.release(&schema);
  stream->release(stream);
}

static void read_log(const char *path) {
  RovelogLog *log = rovelog_open(path, 0);
  if (log == NULL) {
    printf("error %d\n", rovelog_last_error_code());
    return;
  }
  printf("%s %zu topics, %zu problems\n", rovelog_format(log), rovelog_topic_count(log),
         rovelog_problem_count(log));
  for (size_t i = 0; i < rovelog_topic_count(log); i++) {
    RovelogTopic topic;
    struct ArrowArrayStream stream;
    if (rovelog_topic(log, i, &topic) != ROVELOG_STATUS_OK) fail(path, rovelog_last_error_message());
    printf("%s (%s) %" PRIu64 " records,", topic.name, topic.type_name, topic.records);
    if (rovelog_stream(log, i, NULL, &stream) == ROVELOG_STATUS_OK) {
      read_stream(&stream);
    } else {
      printf(" error %d\n", rovelog_last_error_code());
    }
  }
  for (size_t i = 0; i < rovelog_problem_count(log); i++) {
    RovelogProblem problem;
    if (rovelog_problem(log, i, &problem) != ROVELOG_STATUS_OK) fail(path, rovelog_last_error_message());
    printf("%s severity %d at %" PRIu64 "..%" PRIu64 ": %s\n", problem.code, problem.severity,
           problem.start, problem.end, problem.message);
  }
  rovelog_close(log);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) read_log(argv[i]);
  return 0;
}
