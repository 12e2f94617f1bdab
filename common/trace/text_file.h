// Text files, plain or, when the name ends in ".xz", compressed.
#ifndef METS_COMMON_TRACE_TEXT_FILE_H_
#define METS_COMMON_TRACE_TEXT_FILE_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mets::trace {

// Gives the lines of a file to `take`, one by one without their newlines, until
// it returns an error, which is then the result; else whether the last line has
// a newline (an incomplete one is not given). Errors name the file: NOT_FOUND,
// PERMISSION_DENIED; with the line, INVALID_ARGUMENT for a line of more than
// 1 MiB, and DATA_LOSS for a compressed file that is cut or damaged.
absl::StatusOr<bool> ReadLines(
    const std::string& path,
    absl::FunctionRef<absl::Status(absl::string_view)> take);

// Writes a new file, or replaces one. Not thread-safe. Without Close (or after
// an error) the file is incomplete.
class TextFileWriter {
 public:
  static absl::StatusOr<std::unique_ptr<TextFileWriter>> Create(
      const std::string& path);
  virtual ~TextFileWriter() = default;

  // Blocks for the disk. After an error, all calls fail.
  virtual absl::Status Append(absl::string_view text) = 0;
  // Completes the file. REQUIRES: not closed.
  virtual absl::Status Close() = 0;
};

}  // namespace mets::trace

#endif  // METS_COMMON_TRACE_TEXT_FILE_H_
