// What a job may wish: a priority, and a weight, its share of a device's time
// against others of its priority.
#ifndef METS_COMMON_BASE_WEIGHT_H_
#define METS_COMMON_BASE_WEIGHT_H_

namespace mets {

inline constexpr int kMostWeight = 1000;
inline constexpr int kMostPriority = 1000;  // And its negative the least.

inline constexpr bool IsWeight(int weight) {
  return weight >= 1 && weight <= kMostWeight;
}

inline constexpr bool IsPriority(int priority) {
  return priority >= -kMostPriority && priority <= kMostPriority;
}

}  // namespace mets

#endif  // METS_COMMON_BASE_WEIGHT_H_
