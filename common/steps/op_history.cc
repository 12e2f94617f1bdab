#include "common/steps/op_history.h"

namespace mets::steps {

bool OpHistory::EndsAsItBegan(uint32_t apart) const {
  const OpMark& before = Back(apart);
  const Bytes remains = last().live - before.live;
  const Bytes churn = last().churn - before.churn;
  return remains * 16 <= churn && remains * -16 <= churn;
}

bool OpHistory::Repeats(uint32_t apart, uint64_t longest) const {
  if (count_ < apart + 2 || Length(apart) > longest) return false;
  if (!NearlyAsLong(Length(apart),
                    static_cast<uint32_t>(Back(1).at - Back(apart + 1).at))) {
    return false;
  }
  return EndsAsItBegan(apart) &&
         NearlyEqual(Between(0, apart), Between(1, apart + 1));
}

void OpHistory::Compare(uint32_t epoch, uint64_t longest) {
  if (epoch_ != epoch) {
    epoch_ = epoch;
    apart_ = equal_ = 0;
  }
  const uint32_t before = apart_;
  // One that is less apart is the better one.
  for (uint32_t apart = 1; apart <= kMostApart; ++apart) {
    if (!Repeats(apart, longest)) continue;
    equal_ = apart == before ? equal_ + 1 : 1;
    apart_ = apart;
    return;
  }
  apart_ = equal_ = 0;
}

}  // namespace mets::steps
