// ShareBook: the shares of one device.
#ifndef METS_DAEMON_CORE_SHARES_SHARE_BOOK_H_
#define METS_DAEMON_CORE_SHARES_SHARE_BOOK_H_

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
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

  bool orphan() const { return chunks.empty(); }
};

// Not thread-safe. Shares stay at their address while they exist. Changes no
// ledger and no session.
class ShareBook {
 public:
  using Key = std::tuple<DomainId, Epoch, ShareId>;

  // Null when there is none.
  Share* Find(const Key& key);
  const Share* Find(const Key& key) const;
  Share* FindName(DomainId domain, const std::string& name);

  // REQUIRES: neither its key nor its name is taken; it has a holder.
  Share& Add(Share share);
  void Erase(const Share& share);

  size_t CountOf(DomainId domain) const;
  Bytes bytes() const { return bytes_; }
  const std::map<Key, Share>& all() const { return all_; }
  // Those that a session holds; valid until they are erased.
  std::vector<Share*> OfSession(SessionId session);
  // Bytes that a session holds and does not pay for.
  Bytes UnpaidBy(SessionId session) const;

 private:
  std::map<Key, Share> all_;
  std::map<std::pair<DomainId, std::string>, Share*> names_;
  Bytes bytes_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SHARES_SHARE_BOOK_H_
