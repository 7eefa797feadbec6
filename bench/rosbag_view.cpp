// Reads all messages with librosbag-storage: rosbag_view cpp-view LOG. Prints CPU seconds, peak memory in MB and counts.
#include <ctime>
#include <cstdio>
#include <cstdint>
#include <sys/resource.h>
#include <vector>
#include <rosbag/bag.h>
#include <rosbag/view.h>

// A message of any type, as bytes.
struct Raw {
    std::vector<uint8_t> bytes;
};

namespace ros {
namespace serialization {
template <> struct Serializer<Raw> {
    template <typename Stream> static void read(Stream& stream, Raw& raw) {
        raw.bytes.resize(stream.getLength());
        if (!raw.bytes.empty()) memcpy(raw.bytes.data(), stream.advance(raw.bytes.size()), raw.bytes.size());
    }
};
}
namespace message_traits {
template <> struct MD5Sum<Raw> { static const char* value() { return "*"; } static const char* value(const Raw&) { return "*"; } };
template <> struct DataType<Raw> { static const char* value() { return "*"; } static const char* value(const Raw&) { return "*"; } };
template <> struct Definition<Raw> { static const char* value() { return ""; } static const char* value(const Raw&) { return ""; } };
}
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    uint64_t messages = 0, bytes = 0;
    try {
        rosbag::Bag bag(argv[2]);
        rosbag::View view(bag);
        for (const rosbag::MessageInstance& message : view) {
            boost::shared_ptr<Raw> raw = message.instantiate<Raw>();
            bytes += raw ? raw->bytes.size() : 0;
            messages++;
        }
    } catch (const std::exception& error) {
        printf("error after %llu messages: %s\n", (unsigned long long)messages, error.what());
        return 1;
    }
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%.4f s %ld MB %llu messages %llu bytes\n", double(std::clock()) / CLOCKS_PER_SEC, used.ru_maxrss / 1000,
           (unsigned long long)messages, (unsigned long long)bytes);
    return 0;
}
