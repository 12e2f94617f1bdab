#include "daemon/core/shares/share_book.h"

#include <algorithm>

#include "common/base/check.h"

namespace mets::core {

const Share* ShareBook::Find(const Key& key) const {
  const auto it = all_.find(key);
  return it == all_.end() ? nullptr : &it->second;
}

Share* ShareBook::Find(const Key& key) {
  return const_cast<Share*>(std::as_const(*this).Find(key));
}

Share* ShareBook::FindName(DomainId domain, const std::string& name) {
  const auto it = names_.find({domain, name});
  return it == names_.end() ? nullptr : it->second;
}

Share& ShareBook::Add(Share share) {
  METS_CHECK(!share.holders.empty()) << "share " << share.id;
  const Key key = share.key();
  const auto [it, added] = all_.emplace(key, std::move(share));
  METS_CHECK(added) << "share " << it->second.id << " exists";
  Share& kept = it->second;
  bytes_ += kept.size;
  if (!kept.name.empty()) {
    METS_CHECK(names_.emplace(std::pair(kept.domain, kept.name), &kept).second)
        << "share " << kept.name << " exists";
  }
  Changed(kept);
  return kept;
}

void ShareBook::Changed(const Share& share) const {
  if (changes_ != nullptr && changes_->on()) {
    changes_->Add(KeptShare{index_, share});
  }
}

void ShareBook::Erase(const Share& share) {
  const Key key = share.key();
  bytes_ -= share.size;
  if (!share.name.empty()) names_.erase({share.domain, share.name});
  all_.erase(key);
  if (changes_ != nullptr) changes_->Add(Gone<ShareKey>{{index_, key}});
}

size_t ShareBook::CountOf(DomainId domain) const {
  const auto begin = all_.lower_bound({domain, Epoch(), ShareId()});
  return std::distance(
      begin, std::find_if(begin, all_.end(), [domain](const auto& entry) {
        return entry.second.domain != domain;
      }));
}

std::vector<Share*> ShareBook::OfSession(SessionId session) {
  std::vector<Share*> held;
  for (auto& [key, share] : all_) {
    if (share.holders.count(session) > 0) held.push_back(&share);
  }
  return held;
}

Bytes ShareBook::UnpaidBy(SessionId session) const {
  Bytes sum;
  for (const auto& [key, share] : all_) {
    if (share.holders.count(session) > 0 && share.payer != session) {
      sum += share.size;
    }
  }
  return sum;
}

}  // namespace mets::core
