// LineSocket: lines of text between two processes.
#ifndef METS_CLIENT_CTL_BENCH_LINE_SOCKET_H_
#define METS_CLIENT_CTL_BENCH_LINE_SOCKET_H_

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "common/base/unique_fd.h"

namespace mets::ctl {

// One end of a stream socket. Not thread-safe.
class LineSocket {
 public:
  explicit LineSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  bool open() const { return fd_.ok(); }
  void Close() { fd_.reset(); }

  // False when the other end has gone.
  bool Write(const std::string& line) {
    const std::string text = line + "\n";
    return send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // Waits for a line. False when the other end has gone.
  bool Read(std::string* line) {
    for (;;) {
      const size_t end = received_.find('\n');
      if (end != std::string::npos) {
        *line = received_.substr(0, end);
        received_.erase(0, end + 1);
        return true;
      }
      char part[4096];
      const ssize_t size = read(fd_.get(), part, sizeof(part));
      if (size <= 0) return false;
      received_.append(part, size);
    }
  }

 private:
  UniqueFd fd_;
  std::string received_;
};

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_BENCH_LINE_SOCKET_H_
