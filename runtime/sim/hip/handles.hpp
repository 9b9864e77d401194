// Handles that programs hold: pointers that are looked up, never followed blindly.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace kiln::sim::hip {

// Maps the handle type of the interface (hipEvent_t) to the object behind it. Thread safe.
template <class Handle, class Object>
class Handles {
  public:
    [[nodiscard]] static Handle handle_of(const Object* object) {
        return static_cast<Handle>(const_cast<void*>(static_cast<const void*>(object)));
    }
    Handle insert(std::shared_ptr<Object> object) {
        const Handle handle = handle_of(object.get());
        const std::scoped_lock lock(mutex_);
        objects_.emplace(handle, std::move(object));
        return handle;
    }
    // Null when there is none.
    [[nodiscard]] std::shared_ptr<Object> find(Handle handle) const {
        const std::scoped_lock lock(mutex_);
        const auto found = objects_.find(handle);
        return found != objects_.end() ? found->second : nullptr;
    }
    // What was removed; null when there was none.
    std::shared_ptr<Object> erase(Handle handle) {
        const std::scoped_lock lock(mutex_);
        const auto found = objects_.find(handle);
        if (found == objects_.end()) {
            return nullptr;
        }
        auto object = std::move(found->second);
        objects_.erase(found);
        return object;
    }

  private:
    mutable std::mutex mutex_;
    std::unordered_map<Handle, std::shared_ptr<Object>> objects_;  // protected by mutex_
};

}  // namespace kiln::sim::hip
