#include "daemon/core/lending.h"

#include <utility>

namespace mets::core {

void NoteLent(Holding& holding, const std::vector<ChunkId>& chunks) {
  holding.lent.insert(chunks.begin(), chunks.end());
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
  for (auto it = holding.lent.begin(); it != holding.lent.end();) {
    const Chunk* chunk = device.ledger.Find(*it);
    const bool fits =
        chunk != nullptr &&
        (job.limit.is_zero() || has + granted + chunk->size <= job.limit);
    if (chunk == nullptr || !chunk->KnownTo(session.id)) {
      it = holding.lent.erase(it);  // Destroyed since, or forgotten.
    } else if (chunk->state != ChunkState::kFree || !fits) {
      ++it;
    } else {
      device.ledger.Reserve(chunk->id, 0);
      device.ledger.Grant(chunk->id, session.id);
      holding.chunks.insert(chunk->id);
      granted += chunk->size;
      regrant.chunks.push_back(chunk->id);
      it = holding.lent.erase(it);
    }
  }
  if (regrant.chunks.empty()) return;
  holding.chunk_bytes += granted;
  holding.cached += granted;
  state.RefreshSession(session.id);
  regrant.session = session.id;
  regrant.device = device.config.name;
  state.Send(std::move(regrant));
}

}  // namespace mets::core
