#include "common/base/bytes.h"

#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace mets {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 62;

struct Unit {
  absl::string_view name;
  int shift;
};
constexpr Unit kUnits[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}};

absl::Status BadSize(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text,
      "' is no size: write bytes (\"4096\") or a whole number with KiB, MiB, "
      "GiB or TiB (\"192MiB\"), at most 2^62 bytes"));
}

bool IsDigits(absl::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("0123456789") == absl::string_view::npos;
}

// Three significant digits, without trailing zeros after the point.
std::string ThreeDigits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::string text = absl::StrFormat("%.*f", decimals, value);
  if (decimals == 0) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::string FormatBytes(Bytes amount) {
  const int64_t count = amount.count();
  if (count < 0) {
    if (count == std::numeric_limits<int64_t>::min()) return "-8388608 TiB";
    return absl::StrCat("-", FormatBytes(Bytes(-count)));
  }
  for (const Unit& unit : kUnits) {
    // 1023.9 KiB would read "1024 KiB".
    const double value =
        static_cast<double>(count) / (int64_t{1} << unit.shift);
    if (value >= 0.9995) {
      return absl::StrCat(ThreeDigits(value), " ", unit.name);
    }
  }
  return absl::StrCat(count, " B");
}

absl::StatusOr<Bytes> ParseBytes(absl::string_view text) {
  absl::string_view digits = text;
  int shift = 0;
  for (const Unit& unit : kUnits) {
    if (absl::ConsumeSuffix(&digits, unit.name)) {
      shift = unit.shift;
      break;
    }
  }
  int64_t number = 0;
  if (!IsDigits(digits) || !absl::SimpleAtoi(digits, &number) ||
      number > (kMaxCount >> shift)) {
    return BadSize(text);
  }
  return Bytes(number << shift);
}

std::ostream& operator<<(std::ostream& out, Bytes amount) {
  return out << FormatBytes(amount);
}

}  // namespace mets
