#include "client/src/request_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/log.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace mets::client {
namespace {

constexpr absl::Duration kSayAfter = absl::Seconds(2);
// How long the daemon may be late with an answer.
constexpr absl::Duration kGrace = absl::Seconds(5);

uint32_t WaitMs(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) {
    return std::numeric_limits<uint32_t>::max();
  }
  const absl::Duration left = deadline - SteadyNow();
  return static_cast<uint32_t>(
      std::clamp<int64_t>(absl::ToInt64Milliseconds(left), 0,
                          std::numeric_limits<uint32_t>::max() - 1));
}

std::vector<uint64_t> ChunkIds(const v1::Granted& granted) {
  std::vector<uint64_t> ids;
  for (const v1::Chunk& chunk : granted.chunks()) {
    ids.push_back(chunk.chunk_id());
  }
  return ids;
}

std::vector<uint32_t> RangeChunks(const v1::Granted& granted) {
  return {granted.range_chunks().begin(), granted.range_chunks().end()};
}

}  // namespace

absl::StatusOr<Grant> RequestTable::Acquire(Device& device,
                                            const std::vector<Bytes>& ranges,
                                            absl::Time deadline,
                                            Waiting waiting) {
  const absl::Time start = SteadyNow();
  auto request = std::make_shared<Request>();
  request->device = &device;
  request->ranges = ranges;
  request->deadline = deadline;
  request->waiting = waiting;
  {
    absl::MutexLock lock(&mutex_);
    const uint64_t id = next_id_++;
    requests_[id] = request;
    if (open_) SendRequest(id, *request);
  }
  for (;;) {
    v1::Granted granted;
    {
      absl::MutexLock lock(&mutex_);
      const absl::Status status = AwaitAnswer(*request, start);
      if (!status.ok()) return GiveUp(*request, status);
      granted = request->grant;
      importer_.Begin();
    }
    const absl::Status imported =
        importer_.Import(device, granted.chunks(), granted.fd_seq());
    absl::MutexLock lock(&mutex_);
    importer_.End();
    // The grant of a stream that broke is void: the snapshot did not name it.
    if (!request->granted) continue;
    if (!imported.ok() && open_) return GiveUp(*request, imported);
    if (!imported.ok()) {
      request->granted = false;
      continue;
    }
    Remove(*request);
    METS_ASSIGN_OR_RETURN(Grant grant,
                          device.Hold(ChunkIds(granted), RangeChunks(granted)));
    grant.overdraft = granted.overdraft();
    grant.generation = generation_;
    const absl::Duration waited = SteadyNow() - start;
    device.NoteAcquire(waited > absl::Milliseconds(1) ? waited
                                                      : absl::ZeroDuration());
    return grant;
  }
}

uint64_t RequestTable::Remove(const Request& request) {
  for (auto it = requests_.begin(); it != requests_.end(); ++it) {
    if (it->second.get() != &request) continue;
    const uint64_t id = it->first;
    requests_.erase(it);
    return id;
  }
  return 0;
}

absl::Status RequestTable::GiveUp(const Request& request,
                                  const absl::Status& status) {
  const bool unanswered =
      open_ && request.sent && !request.granted && request.denied.ok();
  const uint64_t id = Remove(request);
  if (unanswered) {
    late_[id] = request.device->options().id;
    v1::ClientMessage cancel;
    cancel.mutable_cancel()->set_request_id(id);
    send_(std::move(cancel));
  }
  return status;
}

void RequestTable::SendRequest(uint64_t id, Request& request) {
  v1::ClientMessage message;
  v1::Acquire* acquire = message.mutable_acquire();
  acquire->set_request_id(id);
  acquire->set_device(request.device->options().id);
  for (Bytes range : request.ranges) acquire->add_range_bytes(range.count());
  acquire->set_deadline_ms(WaitMs(request.deadline));
  acquire->set_overdraft(request.waiting.mode != WaitMode::kPlain);
  acquire->set_pinned(request.waiting.mode == WaitMode::kPinned);
  acquire->set_op(request.waiting.op);
  acquire->set_fewest_chunks(request.waiting.fewest_chunks);
  request.sent = true;
  send_(std::move(message));
}

absl::Status RequestTable::AwaitAnswer(Request& request, absl::Time start) {
  const absl::Time answer_by = std::max(request.deadline, start) + kGrace;
  for (;;) {
    if (request.granted) return absl::OkStatus();
    if (!request.denied.ok()) return request.denied;
    if (!ended_.ok()) return ended_;
    const absl::Time now = SteadyNow();
    if (now >= request.waiting.until) {
      return absl::ResourceExhaustedError("the request was withdrawn");
    }
    if (!open_ && now >= request.deadline) {
      return absl::UnavailableError(
          "metsd is away, and so is the memory that this process wants; it "
          "goes on when metsd is back");
    }
    if (now >= answer_by) {
      return absl::UnavailableError(
          "metsd did not answer a request for memory in time");
    }
    if (now >= start + kSayAfter && !said_waiting_ && !open_) {
      said_waiting_ = true;
      SayWaiting(request);
    }
    absl::Time wake = std::min(open_ ? answer_by : request.deadline, answer_by);
    wake = std::min(wake, request.waiting.until);
    // Where metsd is there, it says itself why one waits.
    if (!said_waiting_)
      wake = std::min(wake, (open_ ? now : start) + kSayAfter);
    answered_.WaitWithTimeout(&mutex_, wake - now);
  }
}

void RequestTable::SayWaiting(const Request& request) {
  Bytes total;
  for (Bytes range : request.ranges) total += range;
  Log(LogLevel::kNotice,
      absl::StrCat("waiting for ", FormatBytes(total), " of ",
                   request.device->options().id, " (pool ",
                   FormatBytes(request.device->options().pool),
                   "); metsd is away. METS_WAIT sets how long to wait"));
}

void RequestTable::OnGranted(const v1::Granted& granted) {
  absl::MutexLock lock(&mutex_);
  auto it = requests_.find(granted.request_id());
  if (it != requests_.end()) {
    it->second->granted = true;
    it->second->grant = granted;
    answered_.SignalAll();
    return;
  }
  auto late = late_.find(granted.request_id());
  if (late == late_.end()) return;
  v1::ClientMessage message;
  v1::Release* release = message.mutable_release();
  release->set_device(late->second);
  for (const v1::Chunk& chunk : granted.chunks()) {
    release->add_chunk_ids(chunk.chunk_id());
  }
  release->set_overdraft(granted.overdraft());
  late_.erase(late);
  send_(std::move(message));
}

void RequestTable::OnDenied(const v1::Denied& denied) {
  absl::MutexLock lock(&mutex_);
  late_.erase(denied.request_id());
  auto it = requests_.find(denied.request_id());
  if (it == requests_.end()) return;
  it->second->denied = denied.impossible()
                           ? absl::OutOfRangeError(denied.reason())
                           : absl::ResourceExhaustedError(denied.reason());
  answered_.SignalAll();
}

void RequestTable::OnBroken() {
  absl::MutexLock lock(&mutex_);
  open_ = false;
  late_.clear();
  for (auto& [id, request] : requests_) {
    request->sent = request->granted = false;
  }
  answered_.SignalAll();
}

void RequestTable::OnOpen(uint64_t generation) {
  absl::MutexLock lock(&mutex_);
  open_ = true;
  generation_ = generation;
  std::map<uint64_t, std::shared_ptr<Request>> again;
  again.swap(requests_);
  for (auto& [old_id, request] : again) {
    const uint64_t id = next_id_++;
    requests_[id] = request;
    SendRequest(id, *request);
  }
  answered_.SignalAll();
}

void RequestTable::OnEnded(absl::Status why) {
  absl::MutexLock lock(&mutex_);
  ended_ = std::move(why);
  open_ = false;
  answered_.SignalAll();
}

}  // namespace mets::client
