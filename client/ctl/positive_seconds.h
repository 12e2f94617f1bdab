// What an option for a time accepts.
#ifndef METS_CLIENT_CTL_POSITIVE_SECONDS_H_
#define METS_CLIENT_CTL_POSITIVE_SECONDS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mets::ctl {

// A number of seconds above 0, and at most a year.
inline CLI::Validator PositiveSeconds() {
  return CLI::Validator(
      [](std::string& text) {
        double seconds = 0;
        if (absl::SimpleAtod(text, &seconds) && seconds > 0 &&
            seconds <= 366 * 86400.0) {
          return std::string();
        }
        return absl::StrCat("'", text,
                            "' is not possible; a number of "
                            "seconds is needed, above 0 and at most a year");
      },
      "");
}

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_POSITIVE_SECONDS_H_
