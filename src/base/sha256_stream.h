// SHA-256 of what comes in pieces.
#pragma once

#include <memory>
#include <string_view>

#include "base/sha256.h"

struct evp_md_ctx_st;

namespace vmonce {

class Sha256Stream final {
 public:
  Sha256Stream();
  ~Sha256Stream();
  Sha256Stream(const Sha256Stream&) = delete;
  Sha256Stream& operator=(const Sha256Stream&) = delete;

  void Add(std::string_view bytes);
  // Of all that was added. Once, last.
  Digest Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace vmonce
