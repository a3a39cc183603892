#ifndef ESDP_TOOLS_ESDP_FILES_DIGEST_H_
#define ESDP_TOOLS_ESDP_FILES_DIGEST_H_

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <memory>

namespace esdp_files {

using Sum = std::array<std::byte, 32>;

// SHA-256, piece by piece.
class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }
  void Add(const std::byte* bytes, size_t length) {
    EVP_DigestUpdate(context_.get(), bytes, length);
  }
  Sum Finish() {
    Sum sum{};
    EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(sum.data()), nullptr);
    return sum;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace esdp_files

#endif  // ESDP_TOOLS_ESDP_FILES_DIGEST_H_
