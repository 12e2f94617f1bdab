#include "daemon/status_page/bounded_server.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "common/base/unique_fd.h"

namespace mets::status_page {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kThreads = 16;
constexpr int kMostConnections = 64;
constexpr size_t kMostRequest = 16 << 10;
constexpr std::chrono::seconds kRequestTime(2);
constexpr std::chrono::seconds kAnswerTime(3);

// A pool of threads that lets the one that accepts wait while too much is open.
class BoundedPool : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override {
    const auto room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return open_ < kMostConnections;
    };
    {
      absl::MutexLock lock(&mutex_, absl::Condition(&room));
      ++open_;
    }
    threads_.enqueue([this, task = std::move(task)] {
      task();
      absl::MutexLock lock(&mutex_);
      --open_;
    });
  }

  void shutdown() override { threads_.shutdown(); }

 private:
  absl::Mutex mutex_;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  httplib::ThreadPool threads_{kThreads};
};

// Waits until the socket is ready for `events`; false after the deadline.
bool Await(int socket, short events, SteadyClock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      deadline - SteadyClock::now());
  pollfd ready = {socket, events, 0};
  return left.count() > 0 &&
         poll(&ready, 1, static_cast<int>(left.count())) == 1;
}

bool IsComplete(const std::string& request) {
  return request.find("\r\n\r\n") != std::string::npos;
}

// A request's head, and what came with it; incomplete when the client is slow,
// says too much, or has gone.
std::string ReadRequest(int socket) {
  const auto deadline = SteadyClock::now() + kRequestTime;
  std::string request;
  char part[4096];
  while (request.size() < kMostRequest && !IsComplete(request) &&
         Await(socket, POLLIN, deadline)) {
    const ssize_t n = recv(socket, part, sizeof(part), MSG_DONTWAIT);
    if (n <= 0) break;
    request.append(part, static_cast<size_t>(n));
  }
  return request;
}

void SendAnswer(int socket, const std::string& answer) {
  const auto deadline = SteadyClock::now() + kAnswerTime;
  size_t sent = 0;
  while (sent < answer.size() && Await(socket, POLLOUT, deadline)) {
    const ssize_t n = send(socket, answer.data() + sent, answer.size() - sent,
                           MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) return;
    sent += static_cast<size_t>(std::max<ssize_t>(n, 0));
  }
}

// A request that has been read, and its answer.
class TextStream : public httplib::Stream {
 public:
  explicit TextStream(std::string request) : request_(std::move(request)) {}
  const std::string& answer() const { return answer_; }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    const size_t n = request_.copy(to, size, read_);
    read_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* from, size_t size) override {
    answer_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  const std::string request_;
  size_t read_ = 0;
  std::string answer_;
};

}  // namespace

BoundedServer::BoundedServer() {
  new_task_queue = [] { return new BoundedPool; };
}

bool BoundedServer::process_and_close_socket(socket_t socket) {
  const UniqueFd closed(socket);
  std::string request = ReadRequest(socket);
  if (!IsComplete(request)) return false;
  TextStream stream(std::move(request));
  bool ends = false;
  const bool answered =
      process_request(stream, /*close_connection=*/true, ends, nullptr);
  SendAnswer(socket, stream.answer());
  shutdown(socket, SHUT_WR);
  return answered;
}

}  // namespace mets::status_page
