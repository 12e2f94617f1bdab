// ShareBook: the shares of one device.
#ifndef METS_DAEMON_CORE_SHARES_SHARE_BOOK_H_
#define METS_DAEMON_CORE_SHARES_SHARE_BOOK_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/kept/change.h"
#include "daemon/core/shares/share.h"

namespace mets::core {

// Not thread-safe. Shares stay at their address while they exist. Changes no
// ledger and no session.
class ShareBook {
 public:
  using Key = Share::Key;

  // `changes`, if there is one, is told of the shares of device `index`.
  explicit ShareBook(ChangeLog* changes = nullptr, size_t index = 0)
      : changes_(changes), index_(index) {}

  // Null when there is none.
  Share* Find(const Key& key);
  const Share* Find(const Key& key) const;
  Share* FindName(DomainId domain, const std::string& name);

  // REQUIRES: neither its key nor its name is taken; it has a holder.
  Share& Add(Share share);
  void Erase(const Share& share);
  // Its holders have changed.
  void Changed(const Share& share) const;

  size_t CountOf(DomainId domain) const;
  Bytes bytes() const { return bytes_; }
  const std::map<Key, Share>& all() const { return all_; }
  // Those that a session holds; valid until they are erased.
  std::vector<Share*> OfSession(SessionId session);
  // Bytes that a session holds and does not pay for.
  Bytes UnpaidBy(SessionId session) const;

 private:
  ChangeLog* const changes_;
  const size_t index_;
  std::map<Key, Share> all_;
  std::map<std::pair<DomainId, std::string>, Share*> names_;
  Bytes bytes_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SHARES_SHARE_BOOK_H_
