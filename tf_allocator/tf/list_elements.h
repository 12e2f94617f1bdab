// What is in TensorFlow's tensor lists.
#ifndef METS_TF_ALLOCATOR_TF_LIST_ELEMENTS_H_
#define METS_TF_ALLOCATOR_TF_LIST_ELEMENTS_H_

#include <cstdint>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/kernels/tensor_list.h"

namespace mets {

// Calls `visit` with every tensor that is in the lists that `variants` has, or
// in lists in these. False when one of its variants is something else. Nobody
// changes a list that somebody else refers to.
template <typename Visit>
bool VisitElements(const tensorflow::Tensor& variants, const Visit& visit) {
  const auto* variant = static_cast<const tensorflow::Variant*>(
      tensorflow::DMAHelper::base(&variants));
  if (variant == nullptr) return true;
  bool all = true;
  for (int64_t i = 0; i < variants.NumElements(); ++i, ++variant) {
    if (variant->is_empty()) continue;
    const auto* list = variant->get<tensorflow::TensorList>();
    if (list == nullptr) {
      all = false;
      continue;
    }
    for (const tensorflow::Tensor& element : list->tensors()) {
      if (element.dtype() == tensorflow::DT_VARIANT) {
        all = VisitElements(element, visit) && all;
      } else if (tensorflow::DMAHelper::buffer(&element) != nullptr) {
        visit(element);
      }
    }
  }
  return all;
}

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_LIST_ELEMENTS_H_
