// Changes of a core as words, for the journal.
#ifndef METS_DAEMON_APP_STORE_CHANGE_CODE_H_
#define METS_DAEMON_APP_STORE_CHANGE_CODE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/kept/change.h"

namespace mets::app {

// What a journal's changes are about.
struct JournalBasis {
  struct Device {
    std::string name;
    std::string kind;
    std::vector<Bytes> chunk_classes;
  };
  Epoch epoch;
  std::vector<Device> devices;
};

void Encode(const JournalBasis& basis, std::vector<uint64_t>* words);
void Encode(const core::Change& change, std::vector<uint64_t>* words);

// The next change of words; they begin behind it then. False for words that are
// none.
bool Decode(const uint64_t** begin, const uint64_t* end, JournalBasis* basis);
bool Decode(const uint64_t** begin, const uint64_t* end, core::Change* change);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_STORE_CHANGE_CODE_H_
