/* MEX function for MATLAB and Octave.
 *
 *   rows = rovelog_topic(LOG, TOPIC)
 *
 * Returns a struct with one field for each numeric column of a topic. A column is a vector, or a
 * matrix with one row per record if the column has arrays of fixed length. `t_ns` is the time in
 * nanoseconds of the log's clock. A missing value is 0. Other columns, such as texts, Booleans and
 * nested structs, are left out, and a warning names them. */

#include <mex.h>
#include <rovelog.h>
#include <stdlib.h>
#include <string.h>

/* Columns of all batches. */
struct Batches {
  struct ArrowSchema schema;
  struct ArrowArray *items;
  int64_t count, rows;
};

/* Returns the class of a column with the Arrow format `format`. */
static mxClassID class_of(const char *format) {
  static const char formats[] = "cCsSiIlLfg";
  static const mxClassID classes[] = {mxINT8_CLASS,  mxUINT8_CLASS,  mxINT16_CLASS, mxUINT16_CLASS, mxINT32_CLASS,
                                      mxUINT32_CLASS, mxINT64_CLASS, mxUINT64_CLASS, mxSINGLE_CLASS, mxDOUBLE_CLASS};
  const char *found = format[1] == '\0' ? strchr(formats, format[0]) : NULL;
  return found == NULL || format[0] == '\0' ? mxUNKNOWN_CLASS : classes[found - formats];
}

/* Reads all batches of a stream. Releases the stream. Returns an error message or NULL. */
static const char *read_batches(struct ArrowArrayStream *stream, struct Batches *batches) {
  static char message[512];
  struct ArrowArray batch;
  int error = stream->get_schema(stream, &batches->schema);
  while (error == 0 && (error = stream->get_next(stream, &batch)) == 0 && batch.release != NULL) {
    batches->items = realloc(batches->items, (size_t)(batches->count + 1) * sizeof batch);
    batches->items[batches->count++] = batch;
    batches->rows += batch.length;
  }
  if (error != 0) {
    const char *why = stream->get_last_error(stream);
    strncpy(message, why != NULL ? why : "the stream failed", sizeof message - 1);
  }
  stream->release(stream);
  return error != 0 ? message : NULL;
}

/* Copies column `index` of all batches, or returns NULL if the column is not numeric. */
static mxArray *copy_column(const struct Batches *batches, int64_t index) {
  const struct ArrowSchema *schema = batches->schema.children[index];
  int64_t width = 1, at = 0;
  int is_array = strncmp(schema->format, "+w:", 3) == 0;
  if (is_array) width = atoll(schema->format + 3);
  mxClassID class = class_of(is_array ? schema->children[0]->format : schema->format);
  if (class == mxUNKNOWN_CLASS) return NULL;
  mxArray *matrix = mxCreateNumericMatrix((mwSize)batches->rows, (mwSize)width, class, mxREAL);
  size_t size = mxGetElementSize(matrix);
  char *out = mxGetData(matrix);
  for (int64_t i = 0; i < batches->count; i++) {
    const struct ArrowArray *column = batches->items[i].children[index];
    const struct ArrowArray *values = is_array ? column->children[0] : column;
    int64_t first = is_array ? column->offset * width + values->offset : column->offset;
    const char *in = (const char *)values->buffers[1] + first * (int64_t)size;
    for (int64_t row = 0; row < column->length; row++, at++) {
      for (int64_t k = 0; k < width; k++) {
        memcpy(out + (at + k * batches->rows) * (int64_t)size, in + (row * width + k) * (int64_t)size, size);
      }
    }
  }
  return matrix;
}

/* Adds all numeric columns to a struct. */
static mxArray *to_struct(const struct Batches *batches) {
  mxArray *rows = mxCreateStructMatrix(1, 1, 0, NULL);
  for (int64_t i = 0; i < batches->schema.n_children; i++) {
    const char *name = batches->schema.children[i]->name;
    mxArray *column = copy_column(batches, i);
    if (column == NULL) {
      mexWarnMsgIdAndTxt("rovelog:column", "the column %s is not numeric and is left out", name);
    } else {
      mxSetFieldByNumber(rows, 0, mxAddField(rows, name), column);
    }
  }
  return rows;
}

void mexFunction(int nlhs, mxArray *plhs[], int nrhs, const mxArray *prhs[]) {
  (void)nlhs;
  if (nrhs != 2 || !mxIsChar(prhs[0]) || !mxIsChar(prhs[1])) {
    mexErrMsgIdAndTxt("rovelog:usage", "usage: rows = rovelog_topic(LOG, TOPIC)");
  }
  char *path = mxArrayToString(prhs[0]), *topic = mxArrayToString(prhs[1]);
  struct Batches batches = {0};
  struct ArrowArrayStream stream;
  const char *error = NULL;
  size_t index;
  RovelogLog *log = rovelog_open(path, 0);
  if (log == NULL || rovelog_find_topic(log, topic, &index) != ROVELOG_STATUS_OK ||
      rovelog_stream(log, index, NULL, &stream) != ROVELOG_STATUS_OK) {
    error = rovelog_last_error_message();
  } else {
    error = read_batches(&stream, &batches);
  }
  if (rovelog_problem_count(log) > 0) {
    RovelogProblem problem;
    rovelog_problem(log, 0, &problem);
    mexWarnMsgIdAndTxt("rovelog:problem", "%zu problems, the first at byte %llu: %s", rovelog_problem_count(log),
                       (unsigned long long)problem.start, problem.message);
  }
  rovelog_close(log);
  if (error == NULL) plhs[0] = to_struct(&batches);
  for (int64_t i = 0; i < batches.count; i++) batches.items[i].release(&batches.items[i]);
  free(batches.items);
  if (batches.schema.release != NULL) batches.schema.release(&batches.schema);
  if (error != NULL) mexErrMsgIdAndTxt("rovelog:error", "%s", error);
}
