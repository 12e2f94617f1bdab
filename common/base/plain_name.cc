#include "common/base/plain_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace mets {
namespace {

constexpr size_t kMaxLength = 63;

bool IsAllowed(char c) {
  return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
}

}  // namespace

absl::Status ValidatePlainName(absl::string_view kind, absl::string_view name) {
  bool valid = !name.empty() && name.size() <= kMaxLength;
  for (char c : name) valid = valid && IsAllowed(c);
  if (valid) return absl::OkStatus();
  const bool cut = name.size() > kMaxLength + 1;
  return absl::InvalidArgumentError(absl::StrCat(
      "bad ", kind, " name '", absl::CHexEscape(name.substr(0, kMaxLength + 1)),
      cut ? "…" : "", "' (", name.size(), " characters): a ", kind,
      " name has 1 to 63 characters from A-Z, a-z, 0-9, '.', '_' and '-'"));
}

}  // namespace mets
