#include "shardplan/error.h"

#include <utility>

namespace shardplan::api {

Error::Error(std::string what, ErrorParts parts)
    : what_(std::move(what)), parts_(std::move(parts)) {}

// Here, so that the class has its type information in the library alone.
Error::~Error() = default;
Error::Error(const Error&) = default;
Error& Error::operator=(const Error&) = default;

const char* Error::what() const noexcept {
  return what_.c_str();
}

const ErrorParts& Error::parts() const noexcept {
  return parts_;
}

}  // namespace shardplan::api
