// Loads the plug-in with the loader of PlotJuggler's SDK, and imports logs as PlotJuggler does.
//
// usage: plotjuggler PLUGIN LOG...
//
// Prints "LOG<tab>topic<tab>NAME<tab>ROWS<tab>COLUMNS" for each topic, "LOG<tab>message<tab>TEXT" for
// each message, and "LOG<tab>error<tab>TEXT" for a log that is refused. Then imports the first log
// again, and cancels the import in three ways.

#include <cstdio>
#include <cstdlib>
#include <map>
#include <pj_base/sdk/service_traits.hpp>
#include <pj_plugins/host/data_source_library.hpp>
#include <pj_plugins/host/service_registry_builder.hpp>
#include <string>
#include <vector>

struct Topic {
  std::string name;
  long long rows = 0, columns = 0;
};

struct Host {
  std::vector<Topic> topics;
  std::vector<std::string> messages, states;
  long long cancel_at = -1, stop_after = -1;
  int started = 0, finished = 0;
  bool refuse_streams = false;
};

static std::string text(PJ_string_view_t view) { return std::string(view.data, view.size); }

static void check(bool holds, const char *what) {
  if (!holds) {
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
  }
}

static bool ensure_topic(void *ctx, PJ_string_view_t name, PJ_topic_handle_t *out, PJ_error_t *) noexcept {
  auto &topics = static_cast<Host *>(ctx)->topics;
  topics.push_back({text(name)});
  *out = {static_cast<uint32_t>(topics.size() - 1)};
  return true;
}

static bool append_stream(void *ctx, PJ_topic_handle_t handle, ArrowArrayStream *stream, PJ_string_view_t time,
                          PJ_error_t *error) noexcept {
  auto host = static_cast<Host *>(ctx);
  auto fail = [&](const char *why) {
    PJ::sdk::fillError(error, 1, "host", why);
    return false;
  };
  if (host->refuse_streams) return fail("refused by the test");
  auto &topic = host->topics[handle.id];
  ArrowSchema schema{};
  if (stream->get_schema(stream, &schema) != 0) return fail(stream->get_last_error(stream));
  check(text(time) == "t_ns" && std::string(schema.children[0]->name) == "t_ns", "the first column is t_ns");
  check(std::string(schema.children[0]->format) == "l", "t_ns is an int64");
  topic.columns = schema.n_children;
  for (int64_t i = 0; i < schema.n_children; i++) {
    check(schema.children[i]->n_children == 0, "a column is nested");
    check(std::string("lLiIsScCfgbu").find(schema.children[i]->format) != std::string::npos, "a column type");
  }
  schema.release(&schema);
  for (;;) {
    ArrowArray batch{};
    if (stream->get_next(stream, &batch) != 0) return fail(stream->get_last_error(stream));
    if (batch.release == nullptr) break;
    topic.rows += batch.length;
    batch.release(&batch);
  }
  stream->release(stream);
  return true;
}

static const PJ_source_write_host_vtable_t write_functions = {
    .abi_version = PJ_PLUGIN_DATA_API_VERSION,
    .struct_size = sizeof(PJ_source_write_host_vtable_t),
    .ensure_topic = ensure_topic,
    .ensure_field = nullptr,
    .append_record = nullptr,
    .append_bound_record = nullptr,
    .append_arrow_stream = append_stream,
};

static PJ_data_source_runtime_host_vtable_t runtime_functions() {
  PJ_data_source_runtime_host_vtable_t functions{};
  functions.protocol_version = 1;
  functions.struct_size = sizeof functions;
  functions.report_message = [](void *ctx, PJ_data_source_message_level_t, PJ_string_view_t message) noexcept {
    static_cast<Host *>(ctx)->messages.push_back(text(message));
  };
  functions.progress_start = [](void *ctx, PJ_string_view_t, uint64_t, bool, PJ_error_t *) noexcept {
    static_cast<Host *>(ctx)->started++;
    return true;
  };
  functions.progress_update = [](void *ctx, uint64_t step) noexcept {
    return static_cast<Host *>(ctx)->cancel_at != static_cast<long long>(step);
  };
  functions.progress_finish = [](void *ctx) noexcept { static_cast<Host *>(ctx)->finished++; };
  functions.is_stop_requested = [](void *ctx) noexcept {
    auto host = static_cast<Host *>(ctx);
    return host->stop_after >= 0 && host->stop_after-- == 0;
  };
  functions.notify_state = [](void *, PJ_data_source_state_t) noexcept {};
  functions.request_stop = [](void *, PJ_data_source_state_t, PJ_string_view_t) noexcept {};
  return functions;
}

// Imports a log. Returns an error message, or an empty text after a success.
static std::string import(const PJ::DataSourceLibrary &library, Host &host, const std::string &log) {
  static const auto runtime = runtime_functions();
  PJ::ServiceRegistryBuilder registry;
  registry.registerService<PJ::sdk::SourceWriteHostService>({&host, &write_functions});
  registry.registerService<PJ::sdk::DataSourceRuntimeHostService>({&host, &runtime});
  auto source = library.createHandle();
  if (auto bound = source.bind(registry.view()); !bound) return bound.error();
  std::string config = "{\"filepath\":\"" + log + "\"}", saved;
  if (auto loaded = source.loadConfig(config); !loaded) return loaded.error();
  check(bool(source.saveConfig(saved)) && saved == config, "the settings are kept");
  check(!source.pause(), "a log cannot be paused");
  auto imported = source.start();
  auto state = source.currentState();
  check(state == (imported ? PJ::DataSourceState::kStopped : PJ::DataSourceState::kFailed), "the final state");
  source.stop();
  return imported ? "" : imported.error();
}

int main(int argc, char **argv) {
  check(argc > 2, "usage: plotjuggler PLUGIN LOG...");
  auto library = PJ::DataSourceLibrary::load(argv[1]);
  if (!library) {
    std::fprintf(stderr, "%s\n", library.error().c_str());
    return 1;
  }
  for (int i = 2; i < argc; i++) {
    Host host;
    auto error = import(*library, host, argv[i]);
    check(host.started <= 1 && host.finished == 1, "progress ends once");
    for (auto &topic : host.topics) {
      std::printf("%s\ttopic\t%s\t%lld\t%lld\n", argv[i], topic.name.c_str(), topic.rows, topic.columns);
    }
    for (auto &message : host.messages) std::printf("%s\tmessage\t%s\n", argv[i], message.c_str());
    if (!error.empty()) std::printf("%s\terror\t%s\n", argv[i], error.c_str());
  }
  Host cancelled, stopped, refusing;
  cancelled.cancel_at = 1;
  auto is_cancelled = [](const std::string &error) { return error.find("was cancelled") != std::string::npos; };
  check(is_cancelled(import(*library, cancelled, argv[2])), "cancelled by the progress");
  check(cancelled.topics.size() == 1, "one topic was read before the import was cancelled");
  stopped.stop_after = 0;
  check(is_cancelled(import(*library, stopped, argv[2])), "stopped by the host");
  refusing.refuse_streams = true;
  auto error = import(*library, refusing, argv[2]);
  check(error.find("refused by the test") != std::string::npos, "the error of the host is passed on");
  check(import(*library, refusing, "/no/such/log").size() > 0, "a missing file is an error");
}
