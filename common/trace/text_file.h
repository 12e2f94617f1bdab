// Text files, plain or, when the name ends in ".xz", compressed.
#ifndef METS_COMMON_TRACE_TEXT_FILE_H_
#define METS_COMMON_TRACE_TEXT_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mets::trace {

// The whole text of a file. Errors name the file: NOT_FOUND,
// PERMISSION_DENIED; DATA_LOSS for a compressed file that is cut or damaged,
// with the line up to which it could be read.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

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
