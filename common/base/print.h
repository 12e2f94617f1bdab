// Print: a program's result on its standard output.
#ifndef METS_COMMON_BASE_PRINT_H_
#define METS_COMMON_BASE_PRINT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mets {

// An error when the text cannot be written, for instance to a full disk.
absl::Status Print(absl::string_view text);

}  // namespace mets

#endif  // METS_COMMON_BASE_PRINT_H_
