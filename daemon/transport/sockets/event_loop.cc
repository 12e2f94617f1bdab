#include "daemon/transport/sockets/event_loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "common/base/clock.h"
#include "common/base/errno_status.h"

namespace mets::transport {

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.ok()) return ErrnoToStatus(errno, "epoll_create1");
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.ok()) return ErrnoToStatus(errno, "eventfd");
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = wake.get();
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return ErrnoToStatus(errno, "epoll_ctl");
  }
  return std::unique_ptr<EventLoop>(
      new EventLoop(std::move(epoll), std::move(wake)));
}

EventLoop::EventLoop(UniqueFd epoll, UniqueFd wake)
    : epoll_(std::move(epoll)), wake_(std::move(wake)) {}

EventLoop::~EventLoop() { Stop(); }

absl::Status EventLoop::Watch(int fd, std::function<void()> ready) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return ErrnoToStatus(errno, "epoll_ctl");
  }
  watched_[fd] = std::make_shared<std::function<void()>>(std::move(ready));
  return absl::OkStatus();
}

void EventLoop::Unwatch(int fd) {
  if (watched_.erase(fd) == 0) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::Start(absl::Duration period, std::function<void()> tick) {
  period_ = period;
  tick_ = std::move(tick);
  thread_ = std::thread([this] { Run(); });
}

void EventLoop::Post(std::function<void()> task) {
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  Wake();
}

void EventLoop::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  Wake();
  if (thread_.joinable()) thread_.join();
}

void EventLoop::Wake() {
  const uint64_t one = 1;
  // A full counter wakes as well.
  if (write(wake_.get(), &one, sizeof(one)) < 0) return;
}

void EventLoop::RunTasks() {
  uint64_t count;
  if (read(wake_.get(), &count, sizeof(count)) < 0) return;
  std::vector<std::function<void()>> tasks;
  {
    absl::MutexLock lock(&mutex_);
    tasks.swap(tasks_);
  }
  for (const std::function<void()>& task : tasks) task();
}

void EventLoop::Run() {
  absl::Time next_tick = SteadyNow() + period_;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    epoll_event events[64];
    const int wait_ms = static_cast<int>(absl::ToInt64Milliseconds(period_));
    const int n = epoll_wait(epoll_.get(), events, 64, wait_ms);
    for (int i = 0; i < n; ++i) {
      const int fd = events[i].data.fd;
      if (fd == wake_.get()) {
        RunTasks();
        continue;
      }
      // Earlier callbacks of this round may have unwatched it.
      const auto it = watched_.find(fd);
      if (it == watched_.end()) continue;
      const std::shared_ptr<std::function<void()>> ready = it->second;
      (*ready)();
    }
    if (SteadyNow() >= next_tick || n == 0) {
      tick_();
      next_tick = SteadyNow() + period_;
    }
  }
}

}  // namespace mets::transport
