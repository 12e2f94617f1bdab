#include "daemon/app/store/change_code.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/container/inlined_vector.h"

namespace mets::app {
namespace {

using core::Change;
using core::Gone;

// The parts of each thing, in order: of what is written and of what is read.
auto Parts(JournalBasis::Device& d) {
  return std::tie(d.name, d.kind, d.chunk_classes);
}
auto Parts(JournalBasis& b) { return std::tie(b.epoch, b.devices); }
auto Parts(core::ProcessIdentity& p) {
  return std::tie(p.uid, p.pid, p.start_time);
}
auto Parts(core::KeptSession& s) {
  return std::tie(s.id, s.domain, s.process, s.job, s.limit, s.guarantee,
                  s.priority, s.weight, s.expected, s.orphan);
}
auto Parts(core::KeptChunk& c) {
  return std::tie(c.id, c.device, c.size_class, c.domain, c.holder, c.shared);
}
auto Parts(core::KeptExtent& e) { return std::tie(e.id, e.domain, e.size); }
auto Parts(core::SlotPiece& p) { return std::tie(p.extent, p.offset, p.size); }
auto Parts(core::Slot& s) { return std::tie(s.id, s.pieces); }
auto Parts(core::KeptSlot& s) { return std::tie(s.slot, s.session, s.device); }
auto Parts(core::Share& s) {
  return std::tie(s.id, s.epoch, s.domain, s.name, s.checksum, s.bytes,
                  s.chunks, s.size, s.holders, s.payer);
}
auto Parts(core::KeptShare& s) { return std::tie(s.device, s.share); }
auto Parts(core::KeptIds& i) {
  return std::tie(i.session, i.chunk, i.extent, i.slot, i.share, i.succession);
}
template <typename Key>
auto Parts(Gone<Key>& g) {
  return std::tie(g.key);
}

template <typename T>
struct IsList : std::false_type {};
template <typename T>
struct IsList<std::vector<T>> : std::true_type {};
template <typename T, size_t N>
struct IsList<absl::InlinedVector<T, N>> : std::true_type {};

class Writer {
 public:
  explicit Writer(std::vector<uint64_t>* words) : words_(*words) {}

  template <typename T>
  void operator()(T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      words_.push_back(static_cast<uint64_t>(value));
    } else if constexpr (IsList<T>::value) {
      words_.push_back(value.size());
      for (auto& part : value) (*this)(part);
    } else {
      All(Parts(value));
    }
  }
  template <typename Tag>
  void operator()(Id<Tag>& id) {
    words_.push_back(id.value());
  }
  void operator()(Bytes& bytes) { words_.push_back(bytes.count()); }
  void operator()(std::string& text) {
    const size_t begin = words_.size() + 1;
    words_.push_back(text.size());
    words_.resize(begin + (text.size() + 7) / 8);
    std::memcpy(words_.data() + begin, text.data(), text.size());
  }
  void operator()(std::set<SessionId>& set) {
    std::vector<SessionId> list(set.begin(), set.end());
    (*this)(list);
  }
  void operator()(core::ShareKey& key) {
    (*this)(key.first);
    All(key.second);
  }

 private:
  template <typename... T>
  void All(std::tuple<T...> parts) {
    std::apply([this](auto&... part) { ((*this)(part), ...); }, parts);
  }

  std::vector<uint64_t>& words_;
};

class Reader {
 public:
  Reader(const uint64_t* begin, const uint64_t* end) : at_(begin), end_(end) {}

  bool ok() const { return ok_; }
  const uint64_t* at() const { return at_; }

  template <typename T>
  void operator()(T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(Word());
    } else if constexpr (IsList<T>::value) {
      // A part is a word at least.
      const size_t size = Size(1);
      for (size_t i = 0; i < size && ok_; ++i) (*this)(value.emplace_back());
    } else {
      All(Parts(value));
    }
  }
  template <typename Tag>
  void operator()(Id<Tag>& id) {
    id = Id<Tag>(Word());
  }
  void operator()(Bytes& bytes) { bytes = Bytes(static_cast<int64_t>(Word())); }
  void operator()(std::string& text) {
    const size_t size = Size(8);
    if (!ok_) return;
    text.assign(reinterpret_cast<const char*>(at_), size);
    at_ += (size + 7) / 8;
  }
  void operator()(std::set<SessionId>& set) {
    std::vector<SessionId> list;
    (*this)(list);
    set = {list.begin(), list.end()};
  }
  void operator()(core::ShareKey& key) {
    (*this)(key.first);
    std::apply([this](auto&... part) { ((*this)(part), ...); }, key.second);
  }

 private:
  uint64_t Word() {
    if (at_ < end_) return *at_++;
    ok_ = false;
    return 0;
  }
  // How many follow, so many to a word.
  size_t Size(size_t to_a_word) {
    const uint64_t size = Word();
    const size_t most = (end_ - at_) * to_a_word;
    ok_ = ok_ && size <= most;
    return ok_ ? size : 0;
  }
  template <typename... T>
  void All(std::tuple<T...> parts) {
    std::apply([this](auto&... part) { ((*this)(part), ...); }, parts);
  }

  const uint64_t* at_;
  const uint64_t* const end_;
  bool ok_ = true;
};

template <size_t kIndex = 0>
void ReadChange(uint64_t index, Reader& reader, Change* change) {
  if constexpr (kIndex < std::variant_size_v<Change>) {
    if (index != kIndex) return ReadChange<kIndex + 1>(index, reader, change);
    std::variant_alternative_t<kIndex, Change> value;
    reader(value);
    *change = std::move(value);
  }
}

}  // namespace

// A Writer changes nothing; only Parts wants what it could change.
void Encode(const JournalBasis& basis, std::vector<uint64_t>* words) {
  Writer writer(words);
  writer(const_cast<JournalBasis&>(basis));
}

void Encode(const Change& change, std::vector<uint64_t>* words) {
  words->push_back(change.index());
  std::visit(Writer(words), const_cast<Change&>(change));
}

bool Decode(const uint64_t** begin, const uint64_t* end, JournalBasis* basis) {
  Reader reader(*begin, end);
  reader(*basis);
  *begin = reader.at();
  return reader.ok();
}

bool Decode(const uint64_t** begin, const uint64_t* end, Change* change) {
  Reader reader(*begin, end);
  uint64_t index = 0;
  reader(index);
  if (index >= std::variant_size_v<Change>) return false;
  ReadChange(index, reader, change);
  *begin = reader.at();
  return reader.ok();
}

}  // namespace mets::app
