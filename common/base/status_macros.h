// Early return of errors.
#ifndef METS_COMMON_BASE_STATUS_MACROS_H_
#define METS_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the function when `expression`, an absl::Status, is an error.
#define METS_RETURN_IF_ERROR(expression)                     \
  do {                                                       \
    absl::Status mets_return_status = (expression);          \
    if (!mets_return_status.ok()) return mets_return_status; \
  } while (false)

#define METS_STATUS_CONCAT_INNER(a, b) a##b
#define METS_STATUS_CONCAT(a, b) METS_STATUS_CONCAT_INNER(a, b)

// Evaluates `expression`, an absl::StatusOr; returns its error, or moves its
// value into `target`, which may declare a variable:
//   METS_ASSIGN_OR_RETURN(UniqueFd fd, driver.CreateChunk(size));
// A target with a comma in it needs parentheses around its type's alias.
#define METS_ASSIGN_OR_RETURN(target, expression)                       \
  METS_ASSIGN_OR_RETURN_IMPL(METS_STATUS_CONCAT(mets_value_, __LINE__), \
                             target, expression)
#define METS_ASSIGN_OR_RETURN_IMPL(value, target, expression) \
  auto value = (expression);                                  \
  if (!value.ok()) return std::move(value).status();          \
  target = *std::move(value)

#endif  // METS_COMMON_BASE_STATUS_MACROS_H_
