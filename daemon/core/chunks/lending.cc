#include "daemon/core/chunks/lending.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace mets::core {

void EndLoan(Holding& holding, std::vector<ChunkId> chunks) {
  if (holding.lent.empty()) return;
  std::sort(chunks.begin(), chunks.end());
  const auto ended = [&](ChunkId chunk) {
    return std::binary_search(chunks.begin(), chunks.end(), chunk);
  };
  holding.lent.erase(
      std::remove_if(holding.lent.begin(), holding.lent.end(), ended),
      holding.lent.end());
}

void RegrantLent(State& state, size_t index, Session& session) {
  Device& device = state.devices[index];
  Holding& holding = session.holdings[index];
  const Job& job = *session.job;
  if (holding.lent.empty() || !session.serves() ||
      !device.queue.all().empty()) {
    return;
  }
  const Bytes has = state.sessions.JobBytes(job, index);
  Bytes granted;
  Regrant regrant;
  std::vector<ChunkId> rest;
  for (ChunkId id : holding.lent) {
    const Chunk* chunk = device.ledger.Find(id);
    // Destroyed since, or forgotten.
    if (chunk == nullptr || !chunk->KnownTo(session.id)) continue;
    const bool fits =
        job.limit.is_zero() || has + granted + chunk->size <= job.limit;
    if (chunk->state != ChunkState::kFree || !fits) {
      rest.push_back(id);
      continue;
    }
    device.ledger.Regrant(id, session.id);
    granted += chunk->size;
    regrant.chunks.push_back(id);
  }
  holding.lent = std::move(rest);
  if (regrant.chunks.empty()) return;
  holding.chunk_bytes += granted;
  holding.cached += granted;
  state.RefreshSession(session.id);
  regrant.session = session.id;
  regrant.device = device.config.name;
  state.Send(std::move(regrant));
}

}  // namespace mets::core
