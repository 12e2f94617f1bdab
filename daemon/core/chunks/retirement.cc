#include "daemon/core/chunks/retirement.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace mets::core {

bool Retirement::CanRetire(const Chunk& chunk) const {
  return std::all_of(chunk.knowers.begin(), chunk.knowers.end(),
                     [&](const Chunk::Knower& knower) {
                       const Session* s = state_.sessions.Find(knower.session);
                       return s != nullptr && s->serves();
                     });
}

void Retirement::RetireChunk(size_t device, ChunkId chunk) {
  ChunkLedger& ledger = state_.devices[device].ledger;
  ledger.Drain(chunk);
  for (const Chunk::Knower& knower : ledger.Find(chunk)->knowers) {
    asked_[knower.session].chunks.push_back(chunk);
  }
  DestroyIfForgotten(device, chunk);
}

bool Retirement::CanRetire(const ExtentEntry& extent) const {
  if (extent.state != ExtentState::kReady || !extent.space.empty()) {
    return false;
  }
  for (const auto& [id, session] : state_.sessions.all()) {
    if (session.extents.count(extent.id) > 0 && !session.serves()) {
      return false;
    }
  }
  return true;
}

void Retirement::RetireExtent(ExtentId extent) {
  state_.swap.Drain(extent);
  for (const auto& [id, session] : state_.sessions.all()) {
    if (session.extents.count(extent) > 0) {
      asked_[id].extents.push_back(extent);
    }
  }
  DestroyIfForgotten(extent);
}

Bytes Retirement::Coming(size_t device) const {
  const ChunkLedger& ledger = state_.devices[device].ledger;
  Bytes sum = ledger.bytes(ChunkState::kDestroying);
  for (const Chunk* chunk : ledger.Draining()) {
    if (kept_.count(chunk->id) == 0 && CanRetire(*chunk)) sum += chunk->size;
  }
  return sum;
}

void Retirement::OnForgotten(const Forgotten& input) {
  Session* session = state_.Speaker(input.session);
  Order* order = state_.orders.Find(input.session, input.order);
  if (session == nullptr || order == nullptr ||
      order->kind != OrderKind::kForget) {
    return;
  }
  const Order done = std::move(*order);
  state_.orders.Remove(done.id);
  const std::set<ChunkId> kept(input.kept.begin(), input.kept.end());
  for (ChunkId id : done.chunks) {
    for (size_t i = 0; i < state_.devices.size(); ++i) {
      ChunkLedger& ledger = state_.devices[i].ledger;
      const Chunk* chunk = ledger.Find(id);
      if (chunk == nullptr || chunk->state != ChunkState::kDraining) continue;
      if (kept.count(id) > 0) {
        kept_.insert(id);
        continue;
      }
      ledger.Forget(id, input.session);
      DestroyIfForgotten(i, id);
    }
  }
  for (ExtentId id : done.extents) {
    session->extents.erase(id);
    DestroyIfForgotten(id);
  }
  state_.StirAll();
}

void Retirement::DestroyIfForgotten(size_t device, ChunkId id) {
  Device& d = state_.devices[device];
  const Chunk* chunk = d.ledger.Find(id);
  if (chunk == nullptr || chunk->state != ChunkState::kDraining ||
      !chunk->knowers.empty()) {
    return;
  }
  kept_.erase(id);
  d.ledger.StartDestroying(id);
  state_.Send(DestroyChunk{d.config.id, id});
}

bool Retirement::KnownToAnyone(ExtentId extent) const {
  const auto& all = state_.sessions.all();
  return std::any_of(all.begin(), all.end(), [&](const auto& entry) {
    return entry.second.extents.count(extent) > 0;
  });
}

void Retirement::DestroyIfForgotten(ExtentId id) {
  const ExtentEntry* extent = state_.swap.FindExtent(id);
  if (extent == nullptr || extent->state != ExtentState::kDraining ||
      KnownToAnyone(id)) {
    return;
  }
  state_.swap.StartDestroying(id);
  state_.Send(DestroyExtent{id});
}

void Retirement::OnChunkDestroyed(const ChunkDestroyed& input) {
  for (Device& device : state_.devices) {
    if (device.ledger.Find(input.chunk) == nullptr) continue;
    if (input.status.ok()) {
      device.ledger.Destroyed(input.chunk);
    } else {
      device.ledger.DestroyFailed(input.chunk);
    }
    device.stir = true;
    return;
  }
  METS_CHECK(false) << "no chunk " << input.chunk << " to be destroyed";
}

void Retirement::OnExtentDestroyed(const ExtentDestroyed& input) {
  // One that could not be destroyed keeps its place under the limit.
  if (!input.status.ok()) return;
  state_.swap.Destroyed(input.extent);
  state_.StirAll();
}

void Retirement::OnSessionGone() {
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    for (const Chunk* chunk : state_.devices[i].ledger.Draining()) {
      DestroyIfForgotten(i, chunk->id);
    }
  }
  std::vector<ExtentId> extents;
  for (const auto& [id, extent] : state_.swap.extents()) extents.push_back(id);
  for (ExtentId id : extents) DestroyIfForgotten(id);
}

void Retirement::AskAgain(const Session& session) {
  for (Device& device : state_.devices) {
    for (const Chunk* chunk : device.ledger.Draining()) {
      for (const Chunk::Knower& knower : chunk->knowers) {
        if (knower.session != session.id) continue;
        kept_.erase(chunk->id);
        asked_[session.id].chunks.push_back(chunk->id);
      }
    }
  }
  for (const auto& [id, certain] : session.extents) {
    const ExtentEntry* extent = state_.swap.FindExtent(id);
    if (extent != nullptr && extent->state == ExtentState::kDraining) {
      asked_[session.id].extents.push_back(id);
    }
  }
}

void Retirement::Flush() {
  for (auto& [id, asked] : asked_) {
    const Session* session = state_.sessions.Find(id);
    if (session == nullptr || !session->connected()) continue;
    Order order;
    order.session = id;
    order.kind = OrderKind::kForget;
    order.due = state_.now + state_.config.order_timeout;
    order.chunks = std::move(asked.chunks);
    order.extents = std::move(asked.extents);
    const Order& added = state_.orders.Add(std::move(order));
    state_.Send(ForgetOrder{id, added.id, added.chunks, added.extents});
  }
  asked_.clear();
}

}  // namespace mets::core
