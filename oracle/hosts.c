/* Reads logs through the C interface of Rovelog with nanoarrow, which validates each batch.
 *
 * usage: hosts OPENS LOG...
 *
 * Opens OPENS logs, starting again with the first log after the last one. The first time, prints
 * "LOG<tab>TOPIC<tab>ROWS" for each topic that has a stream. */

#include <inttypes.h>
#include <nanoarrow.h>
#include <rovelog.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int error, const char *log, const char *topic, const char *why) {
  if (error != 0) {
    fprintf(stderr, "%s: %s: %s\n", log, topic, why);
    exit(1);
  }
}

/* Returns the number of rows of a topic. */
static int64_t count_rows(struct ArrowArrayStream *stream, const char *path, const char *topic) {
  struct ArrowSchema schema;
  struct ArrowArray batch;
  struct ArrowArrayView view;
  struct ArrowError error;
  int64_t rows = 0;
  check(ArrowArrayStreamGetSchema(stream, &schema, &error), path, topic, error.message);
  check(ArrowArrayViewInitFromSchema(&view, &schema, &error), path, topic, error.message);
  for (;;) {
    check(ArrowArrayStreamGetNext(stream, &batch, &error), path, topic, error.message);
    if (batch.release == NULL) break;
    check(ArrowArrayViewSetArray(&view, &batch, &error), path, topic, error.message);
    check(ArrowArrayViewValidate(&view, NANOARROW_VALIDATION_LEVEL_FULL, &error), path, topic, error.message);
    rows += batch.length;
    ArrowArrayRelease(&batch);
  }
  ArrowArrayViewReset(&view);
  ArrowSchemaRelease(&schema);
  ArrowArrayStreamRelease(stream);
  return rows;
}

static void read_log(const char *path, int print) {
  RovelogLog *log = rovelog_open(path, 0);
  if (log == NULL) return;
  for (size_t i = 0; i < rovelog_topic_count(log); i++) {
    RovelogTopic topic;
    struct ArrowArrayStream stream;
    check(rovelog_topic(log, i, &topic), path, "", rovelog_last_error_message());
    if (rovelog_stream(log, i, NULL, &stream) != ROVELOG_STATUS_OK) continue;
    int64_t rows = count_rows(&stream, path, topic.name);
    /* The number of records that cannot be decoded is complete after the stream was read. */
    check(rovelog_topic(log, i, &topic), path, "", rovelog_last_error_message());
    if (print) printf("%s\t%s\t%" PRId64 "\n", path, topic.name, rows + (int64_t)topic.undecodable);
  }
  for (size_t i = 0; i < rovelog_problem_count(log); i++) {
    RovelogProblem problem;
    check(rovelog_problem(log, i, &problem), path, "", rovelog_last_error_message());
  }
  char *info = rovelog_info(log);
  check(info == NULL, path, "", rovelog_last_error_message());
  rovelog_free_text(info);
  rovelog_close(log);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  for (int i = 0; i < atoi(argv[1]); i++) read_log(argv[2 + i % (argc - 2)], i < argc - 2);
  return 0;
}
