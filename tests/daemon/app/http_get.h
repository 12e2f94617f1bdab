// The body of an HTTP page.
#ifndef METS_TESTS_DAEMON_APP_HTTP_GET_H_
#define METS_TESTS_DAEMON_APP_HTTP_GET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "common/base/unique_fd.h"

namespace mets {

// `address` is A.B.C.D:PORT. Empty when there is no answer.
inline std::string HttpGet(const std::string& address,
                           const std::string& path) {
  const size_t colon = address.rfind(':');
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(std::stoi(address.substr(colon + 1)));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
    return "";
  }
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: " + address +
                              "\r\n"
                              "Connection: close\r\n\r\n";
  if (write(fd.get(), request.data(), request.size()) < 0) return "";
  std::string answer;
  char buffer[4096];
  for (ssize_t n; (n = read(fd.get(), buffer, sizeof(buffer))) > 0;) {
    answer.append(buffer, n);
  }
  const size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

}  // namespace mets

#endif  // METS_TESTS_DAEMON_APP_HTTP_GET_H_
