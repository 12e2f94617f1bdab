// UniqueFd: an owned file descriptor.
#ifndef METS_COMMON_BASE_UNIQUE_FD_H_
#define METS_COMMON_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace mets {

// Closes its descriptor when it goes. Move-only.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // Gives the descriptor away.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace mets

#endif  // METS_COMMON_BASE_UNIQUE_FD_H_
