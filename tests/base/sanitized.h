#ifndef ESDP_TESTS_BASE_SANITIZED_H_
#define ESDP_TESTS_BASE_SANITIZED_H_

namespace esdp {

// Whether this is a build with a sanitizer: everything takes several times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace esdp

#endif  // ESDP_TESTS_BASE_SANITIZED_H_
