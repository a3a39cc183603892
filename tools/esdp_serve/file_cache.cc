#include "tools/esdp_serve/file_cache.h"

#include <utility>

namespace esdp_serve {

const FileCache::File* FileCache::Find(std::string_view name, absl::Time now) {
  const auto found = files_.find(name);
  if (found == files_.end()) return nullptr;
  if (now - found->second.opened <= kFresh) return &found->second;
  files_.erase(found);
  return nullptr;
}

void FileCache::Add(const std::string& name, esdp_files::Descriptor file, const struct stat& about,
                    absl::Time now) {
  if (files_.size() >= most_) return;  // room comes with DropOld
  files_[name] = {std::move(file), about, now};
}

void FileCache::Remove(std::string_view name) {
  const auto found = files_.find(name);
  if (found != files_.end()) files_.erase(found);
}

void FileCache::DropOld(absl::Time now) {
  std::erase_if(files_, [&](const auto& one) { return now - one.second.opened > kFresh; });
}

}  // namespace esdp_serve
