// Bytes: an amount of memory, and its text form.
#ifndef METS_COMMON_BASE_BYTES_H_
#define METS_COMMON_BASE_BYTES_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mets {

// A number of bytes; never a bare integer in an interface. Signed, so that
// differences work; an amount of memory is never negative.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(int64_t count) : count_(count) {}

  constexpr int64_t count() const { return count_; }
  constexpr bool is_zero() const { return count_ == 0; }

  // Smallest multiple of `unit` that is not less. REQUIRES: unit > 0.
  constexpr Bytes RoundUpTo(Bytes unit) const {
    // Mostly a power of two, for which a division would be slow.
    if ((unit.count_ & (unit.count_ - 1)) == 0) {
      return Bytes((count_ + unit.count_ - 1) & -unit.count_);
    }
    return Bytes((count_ + unit.count_ - 1) / unit.count_ * unit.count_);
  }

  constexpr Bytes& operator+=(Bytes other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend constexpr Bytes operator*(Bytes a, int64_t n) {
    return Bytes(a.count_ * n);
  }
  friend constexpr Bytes operator*(int64_t n, Bytes a) { return a * n; }
  // How often `b` fits into `a`.
  friend constexpr int64_t operator/(Bytes a, Bytes b) {
    return a.count_ / b.count_;
  }
  friend constexpr bool operator==(Bytes a, Bytes b) {
    return a.count_ == b.count_;
  }
  friend constexpr bool operator!=(Bytes a, Bytes b) { return !(a == b); }
  friend constexpr bool operator<(Bytes a, Bytes b) {
    return a.count_ < b.count_;
  }
  friend constexpr bool operator>(Bytes a, Bytes b) { return b < a; }
  friend constexpr bool operator<=(Bytes a, Bytes b) { return !(b < a); }
  friend constexpr bool operator>=(Bytes a, Bytes b) { return !(a < b); }

 private:
  int64_t count_ = 0;
};

constexpr Bytes KiB(int64_t n) { return Bytes(n * (int64_t{1} << 10)); }
constexpr Bytes MiB(int64_t n) { return Bytes(n * (int64_t{1} << 20)); }
constexpr Bytes GiB(int64_t n) { return Bytes(n * (int64_t{1} << 30)); }

// "12.5 MiB", "64 KiB", "17 B": three significant digits, for people.
std::string FormatBytes(Bytes amount);

// Reads "192MiB", "12GiB", "64KiB", "1TiB" or plain bytes ("4096").
// INVALID_ARGUMENT, naming the text and the accepted forms, for anything else
// (also for what is negative or beyond 2^62).
absl::StatusOr<Bytes> ParseBytes(absl::string_view text);

std::ostream& operator<<(std::ostream& out, Bytes amount);

}  // namespace mets

#endif  // METS_COMMON_BASE_BYTES_H_
