#include <errno.h>

#include <fstream>
#include <sstream>
// The packaged library is built with exceptions; the headers alone do without.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "daemon/app/config.h"

namespace mets::app {
namespace {

std::string Place(const std::string& file, const toml::source_region& region) {
  return absl::StrCat(file, ":", region.begin.line);
}

const ConfigKey* FindKey(absl::string_view name) {
  for (const ConfigKey& key : ConfigKeys()) {
    if (name == key.name) return &key;
  }
  return nullptr;
}

absl::Status UnknownKey(const std::string& place, absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat(place, ": unknown key '", name, "'; the keys are ",
                   absl::StrJoin(ConfigKeys(), ", ",
                                 [](std::string* out, const ConfigKey& key) {
                                   absl::StrAppend(out, key.name);
                                 })));
}

absl::Status WrongType(const std::string& place, const ConfigKey& key) {
  return absl::InvalidArgumentError(
      absl::StrCat(place, ": key '", key.name, "' must be a text of the form ",
                   key.form, key.repeatable ? ", or a list of them" : ""));
}

absl::Status SetOne(const std::string& file, const ConfigKey& key,
                    const toml::node& node, Config* config) {
  const std::string place = Place(file, node.source());
  std::string value;
  if (const auto* text = node.as_string()) {
    value = text->get();
  } else if (const auto* number = node.as_integer()) {
    value = absl::StrCat(number->get());  // Sizes may be plain bytes.
  } else {
    return WrongType(place, key);
  }
  const absl::Status status = key.set(value, config);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(place, ": key '", key.name, "': ", status.message()));
}

absl::Status SetKey(const std::string& file, const ConfigKey& key,
                    const toml::node& node, Config* config) {
  const auto* list = node.as_array();
  if (list == nullptr || !key.repeatable) {
    return SetOne(file, key, node, config);
  }
  for (const toml::node& element : *list) {
    METS_RETURN_IF_ERROR(SetOne(file, key, element, config));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadConfigText(const std::string& file, const std::string& text,
                            Config* config) {
  const toml::parse_result result = toml::parse(text, file);
  if (!result) {
    return absl::InvalidArgumentError(
        absl::StrCat(Place(file, result.error().source()), ": ",
                     std::string(result.error().description())));
  }
  for (const auto& [name, node] : result.table()) {
    const std::string key_name(name.str());
    const ConfigKey* key = FindKey(key_name);
    if (key == nullptr) {
      return UnknownKey(Place(file, name.source()), key_name);
    }
    METS_RETURN_IF_ERROR(SetKey(file, *key, node, config));
  }
  return absl::OkStatus();
}

absl::Status ReadConfigFile(const std::string& file, Config* config) {
  std::ifstream stream(file);
  if (!stream) {
    return ErrnoToStatus(errno, absl::StrCat("read configuration ", file));
  }
  std::stringstream text;
  text << stream.rdbuf();
  return ReadConfigText(file, text.str(), config);
}

}  // namespace mets::app
