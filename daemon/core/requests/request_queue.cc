#include "daemon/core/requests/request_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace mets::core {

Request& RequestQueue::Add(Request request) {
  request.number = ++last_;
  return requests_.emplace(last_, std::move(request)).first->second;
}

void RequestQueue::Remove(uint64_t number) { requests_.erase(number); }

Request* RequestQueue::Find(SessionId session, RequestId id) {
  for (auto& [number, request] : requests_) {
    if (request.session == session && request.id == id) return &request;
  }
  return nullptr;
}

Request* RequestQueue::Find(uint64_t number) {
  auto it = requests_.find(number);
  return it == requests_.end() ? nullptr : &it->second;
}

std::vector<Request*> RequestQueue::Waiting(const OpOfSession& first) {
  std::vector<Request*> waiting;
  for (auto& [number, request] : requests_) {
    if (!request.assembling) waiting.push_back(&request);
  }
  const auto key = [&](const Request* r) {
    return std::make_tuple(!(first.session.ok() && r->asker() == first),
                           !r->pinned, -r->priority, r->number);
  };
  std::sort(
      waiting.begin(), waiting.end(),
      [&](const Request* a, const Request* b) { return key(a) < key(b); });
  return waiting;
}

std::vector<Request*> RequestQueue::OfSession(SessionId session) {
  std::vector<Request*> found;
  for (auto& [number, request] : requests_) {
    if (request.session == session) found.push_back(&request);
  }
  return found;
}

size_t RequestQueue::CountOf(SessionId session) const {
  return std::count_if(
      requests_.begin(), requests_.end(),
      [&](const auto& entry) { return entry.second.session == session; });
}

int RequestQueue::WaitingOf(SessionId session) const {
  return std::count_if(
      requests_.begin(), requests_.end(), [&](const auto& entry) {
        return entry.second.session == session && !entry.second.assembling;
      });
}

absl::Time RequestQueue::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [number, request] : requests_) {
    if (!request.assembling) next = std::min(next, request.deadline);
  }
  return next;
}

}  // namespace mets::core
