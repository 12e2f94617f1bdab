#include "client/src/order_worker.h"

#include <pthread.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/eviction_window.h"
#include "client/src/log.h"
#include "common/base/status_macros.h"

namespace mets::client {

OrderWorker::OrderWorker(DescriptorInbox& inbox, ExtentRegistrar& extents,
                         Uplink& uplink, FindDevices devices)
    : inbox_(inbox),
      extents_(extents),
      uplink_(uplink),
      devices_(std::move(devices)) {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "mets-mover");
}

OrderWorker::~OrderWorker() { Stop(); }

void OrderWorker::Post(v1::DaemonMessage order) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back(std::move(order));
}

void OrderWorker::Abandon() {
  absl::MutexLock lock(&mutex_);
  queue_.clear();
  abandon_ = true;
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !busy_;
  };
  mutex_.Await(absl::Condition(&idle));
  abandon_ = false;
}

void OrderWorker::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = abandon_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool OrderWorker::abandoned() {
  absl::MutexLock lock(&mutex_);
  return abandon_;
}

void OrderWorker::Run() {
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || !queue_.empty();
  };
  for (;;) {
    v1::DaemonMessage order;
    {
      absl::MutexLock lock(&mutex_);
      busy_ = false;
      mutex_.Await(absl::Condition(&ready));
      if (stop_) return;
      order = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
    }
    Follow(order);
  }
}

void OrderWorker::Follow(const v1::DaemonMessage& order) {
  switch (order.message_case()) {
    case v1::DaemonMessage::kEvict:
      return Evict(order.evict());
    case v1::DaemonMessage::kTrim:
      return Trim(order.trim());
    case v1::DaemonMessage::kForgetChunks:
      return Forget(order.forget_chunks());
    case v1::DaemonMessage::kRestore:
      return Unsupported(order.restore().order_id(), order.restore().epoch(),
                         "Restore");
    case v1::DaemonMessage::kPlan:
      return Plan(order.plan());
    default:
      return;
  }
}

void OrderWorker::Evict(const v1::Evict& order) {
  v1::OrderDone done;
  done.set_order_id(order.order_id());
  done.set_epoch(order.epoch());
  Device* device = FindDevice(devices_(), order.device());
  absl::Status ready = device == nullptr ? absl::NotFoundError("unknown device")
                                         : AwaitDescriptors(order.fd_seq());
  if (!ready.ok()) {
    done.set_error(std::string(ready.message()));
    for (const v1::EvictCandidate& candidate : order.candidates()) {
      v1::BufferResult* result = done.add_results();
      result->set_buffer_id(candidate.buffer_id());
      result->set_outcome(v1::BUFFER_OUTCOME_FAILED);
    }
    Answer(std::move(done));
    return;
  }
  Bytes freed;
  const std::vector<int> sequence = Sequence(*device, order);
  EvictSome(*device, order, sequence, /*wanted=*/false, &freed, &done);
  EvictSome(*device, order, sequence, /*wanted=*/true, &freed, &done);
  device->AnswerEvictions(std::move(done));
}

// Of those that make up the target, the ones whose extents are registered come
// first: others' are being registered meanwhile, which takes longer than to
// copy a few buffers.
std::vector<int> OrderWorker::Sequence(Device& device, const v1::Evict& order) {
  std::vector<int> sequence(order.candidates_size());
  std::iota(sequence.begin(), sequence.end(), 0);
  uint64_t named = 0;
  auto enough = sequence.begin();
  while (enough != sequence.end() && named < order.target_bytes()) {
    for (const v1::SlotPiece& piece :
         order.candidates(*enough).slot().pieces()) {
      named += piece.size_bytes();
    }
    ++enough;
  }
  std::stable_partition(sequence.begin(), enough, [&](int i) {
    const auto& pieces = order.candidates(i).slot().pieces();
    return std::all_of(pieces.begin(), pieces.end(), [&](const auto& piece) {
      return device.KnowsExtent(piece.extent_id());
    });
  });
  return sequence;
}

// First those that no waiting op has named, then those that one has.
void OrderWorker::EvictSome(Device& device, const v1::Evict& order,
                            const std::vector<int>& sequence, bool wanted,
                            Bytes* freed, v1::OrderDone* done) {
  if (!wanted) {
    for (const v1::EvictCandidate& candidate : order.candidates()) {
      v1::BufferResult* result = done->add_results();
      result->set_buffer_id(candidate.buffer_id());
      result->set_outcome(v1::BUFFER_OUTCOME_SKIPPED);
    }
  }
  const Bytes target(static_cast<int64_t>(order.target_bytes()));
  const auto ended = [&](int i, const Device::EvictResult& evicted) {
    v1::BufferResult* result = done->mutable_results(i);
    result->set_outcome(evicted.outcome);
    result->set_clean(evicted.clean);
    if (evicted.outcome == v1::BUFFER_OUTCOME_DONE) {
      result->set_slot_id(order.candidates(i).slot().slot_id());
    }
    *freed += evicted.freed;
  };
  EvictionWindow window(device, order.order_id(), ended);
  for (int i : sequence) {
    // Not more than what is needed, unless some of it fails.
    while (*freed < target && *freed + window.bytes() >= target) {
      window.FinishOne();
    }
    if (*freed >= target || abandoned()) return;
    const v1::EvictCandidate& candidate = order.candidates(i);
    if (done->results(i).outcome() != v1::BUFFER_OUTCOME_SKIPPED ||
        (!wanted && !device.Unwanted(candidate.buffer_id()))) {
      continue;
    }
    const absl::Status ready = RegisterExtents(device, candidate.slot());
    if (!ready.ok()) {
      Log(LogLevel::kWarning, ready.message());
      done->mutable_results(i)->set_outcome(v1::BUFFER_OUTCOME_FAILED);
      continue;
    }
    window.Begin(i, candidate.buffer_id(), candidate.slot());
  }
}

absl::Status OrderWorker::AwaitDescriptors(uint64_t fd_seq) {
  if (inbox_.WaitFor(fd_seq)) return absl::OkStatus();
  return absl::UnavailableError("the connection broke");
}

absl::Status OrderWorker::RegisterExtents(Device& device,
                                          const v1::Slot& slot) {
  for (const v1::SlotPiece& piece : slot.pieces()) {
    METS_RETURN_IF_ERROR(extents_.Register(device, piece.extent_id()));
  }
  return absl::OkStatus();
}

void OrderWorker::Plan(const v1::Plan& order) {
  v1::OrderDone done;
  done.set_order_id(order.order_id());
  done.set_epoch(order.epoch());
  Device* device = FindDevice(devices_(), order.device());
  if (device == nullptr) {
    done.set_error("unknown device");
    return Answer(std::move(done));
  }
  absl::Status ready = AwaitDescriptors(order.fd_seq());
  for (const v1::PlanSlot& slot : order.slots()) {
    if (ready.ok()) ready = RegisterExtents(*device, slot.slot());
  }
  const absl::Status ended =
      device->FollowPlan(ready.ok() ? order : v1::Plan());
  ready.Update(ended);
  done.set_error(std::string(ready.message()));
  Answer(std::move(done));
}

void OrderWorker::Trim(const v1::Trim& order) {
  v1::OrderDone done;
  done.set_order_id(order.order_id());
  done.set_epoch(order.epoch());
  if (Device* device = FindDevice(devices_(), order.device())) {
    device->Trim(Bytes(static_cast<int64_t>(order.target_bytes())),
                 order.order_id());
  } else {
    done.set_error("unknown device");
  }
  Answer(std::move(done));
}

void OrderWorker::Forget(const v1::ForgetChunks& order) {
  v1::ClientMessage message;
  v1::Forgotten* forgotten = message.mutable_forgotten();
  forgotten->set_order_id(order.order_id());
  forgotten->set_epoch(order.epoch());
  // A descriptor that came later would stay.
  if (!AwaitDescriptors(order.fd_seq()).ok()) return;
  for (uint64_t id : order.chunk_ids()) {
    inbox_.ForgetChunk(id);
    for (Device* device : devices_()) {
      if (!device->Forget(id)) forgotten->add_kept_chunk_ids(id);
    }
  }
  for (uint64_t id : order.extent_ids()) extents_.Forget(id);
  if (!abandoned()) uplink_.Send(std::move(message));
}

void OrderWorker::Unsupported(uint64_t order_id, uint64_t epoch,
                              const char* what) {
  v1::OrderDone done;
  done.set_order_id(order_id);
  done.set_epoch(epoch);
  done.set_error(absl::StrCat("unsupported order: ", what));
  Answer(std::move(done));
}

void OrderWorker::Answer(v1::OrderDone done) {
  if (abandoned()) return;
  v1::ClientMessage message;
  *message.mutable_order_done() = std::move(done);
  uplink_.Send(std::move(message));
}

}  // namespace mets::client
