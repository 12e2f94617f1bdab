// How FakeCluster's sessions share memory.
#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <utility>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

Bytes SizeOf(const std::vector<ChunkRef>& chunks) {
  Bytes sum;
  for (const ChunkRef& chunk : chunks) sum += chunk.size;
  return sum;
}

}  // namespace

// In chunks of earlier epochs; each share counts once.
Bytes FakeCluster::Orphans(const DeviceConfig& device) const {
  Bytes sum;
  std::set<std::tuple<DomainId, Epoch, ShareId>> seen;
  for (const auto& [id, s] : sessions_) {
    if (s->device != device.name) continue;
    for (const auto& [buffer_id, buffer] : s->buffers) sum += buffer.orphan;
    for (const auto& [name, share] : s->shares) {
      if (!share.chunks.empty()) continue;
      if (seen.insert({s->domain, share.epoch, share.id}).second) {
        sum += share.size;
      }
    }
  }
  return sum;
}

void FakeCluster::Publish(FakeSession& s, BufferId id, const std::string& name,
                          const std::string& checksum) {
  const auto it = s.buffers.find(id);
  if (it == s.buffers.end() || !s.connected) return;
  const FakeBuffer& buffer = it->second;
  for (const auto& [request, wanted] : s.requests) {
    if (wanted.buffer == id) return;  // Is being restored.
  }
  if (!buffer.resident || buffer.pinned || buffer.chunks.empty()) return;
  const RequestId request(++s.last_request);
  FakeSession::Publishing& wish = s.publishing[request];
  wish.buffer = buffer;
  wish.input.session = s.id;
  wish.input.request = request;
  wish.input.device = s.device;
  wish.input.name = name;
  wish.input.checksum = checksum;
  wish.input.bytes = buffer.size;
  for (const ChunkRef& chunk : buffer.chunks) {
    wish.input.chunks.push_back(chunk.id);
  }
  s.buffers.erase(it);
  s.changed.insert(id);
  Send(s, wish.input);
}

void FakeCluster::AttachShare(FakeSession& s, const std::string& name,
                              const std::string& checksum, Bytes bytes) {
  if (!s.connected) return;
  const RequestId request(++s.last_request);
  s.attaching[request] = name;
  Send(s, core::AttachShare{s.id, request, s.device, name, checksum, bytes});
}

void FakeCluster::DetachShare(FakeSession& s, const std::string& name) {
  const auto it = s.shares.find(name);
  if (it == s.shares.end()) return;
  for (const ChunkRef& chunk : it->second.chunks) {
    chunks_[chunk.id].sharers.erase(s.id);
  }
  Send(s, core::DetachShare{s.id, s.device, it->second.id, it->second.epoch});
  s.shares.erase(it);
}

// As the core decides it: from now on, the session may have it mapped.
void FakeCluster::CheckShare(const FakeSession& s, const ShareAnswer& answer) {
  EXPECT_EQ(answer.reason.empty(), answer.outcome == ShareOutcome::kDone);
  for (const ChunkRef& ref : answer.chunks) {
    FakeChunk& chunk = chunks_[ref.id];
    EXPECT_TRUE(chunk.ready) << "chunk " << ref.id;
    EXPECT_EQ(chunk.size, ref.size);
    EXPECT_EQ(chunk.domain, s.domain) << "a stranger's chunk " << ref.id;
    EXPECT_TRUE(!chunk.holder.ok() || chunk.holder == s.id) << ref.id;
    chunk.holder = SessionId();
    chunk.sharers.insert(s.id);
  }
}

void FakeCluster::OnShare(FakeSession& s, const ShareAnswer& answer) {
  if (!answer.request.ok()) return;  // Of garbage.
  s.share_answers.push_back(answer);
  for (const ChunkRef& chunk : answer.new_to_session) s.known.insert(chunk.id);
  for (const ChunkRef& chunk : answer.chunks) {
    EXPECT_EQ(s.known.count(chunk.id), 1u) << "no descriptor of " << chunk.id;
    s.lent.erase(chunk.id);
  }
  const bool done = answer.outcome == ShareOutcome::kDone;
  std::string name;
  auto publishing = s.publishing.find(answer.request);
  if (publishing != s.publishing.end()) {
    name = publishing->second.input.name;
    const std::vector<ChunkRef>& chunks = publishing->second.buffer.chunks;
    if (!done) s.cache.insert(s.cache.end(), chunks.begin(), chunks.end());
    s.publishing.erase(publishing);
  } else {
    auto attaching = s.attaching.find(answer.request);
    ASSERT_TRUE(attaching != s.attaching.end())
        << "request " << answer.request << " answered twice";
    name = attaching->second;
    s.attaching.erase(attaching);
  }
  if (!done) return;
  // A share of an earlier epoch may have had the name.
  if (s.shares.count(name) > 0) DetachShare(s, name);
  s.shares[name] = {answer.share, Epoch(epoch_), SizeOf(answer.chunks),
                    answer.chunks};
}

}  // namespace mets::core
