// Share: memory that several sessions have.
#ifndef METS_DAEMON_CORE_SHARES_SHARE_H_
#define METS_DAEMON_CORE_SHARES_SHARE_H_

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"

namespace mets::core {

// Memory that sessions of one domain have mapped read-only. It lives as long as
// any of them holds it.
struct Share {
  ShareId id;
  Epoch epoch;  // In which it was published.
  DomainId domain;
  // Empty: of an earlier epoch; nobody can attach it any more.
  std::string name;
  std::string checksum;
  Bytes bytes;                  // Of the buffer that was published.
  std::vector<ChunkId> chunks;  // None: of an earlier epoch.
  Bytes size;                   // Of the chunks.
  std::set<SessionId> holders;
  SessionId payer;  // The holder whose job is charged with it.

  using Key = std::tuple<DomainId, Epoch, ShareId>;
  Key key() const { return {domain, epoch, id}; }
  bool orphan() const { return chunks.empty(); }
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SHARES_SHARE_H_
