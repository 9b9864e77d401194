// Reads a page of metrics as Prometheus does, strictly: written from the description of the text format,
// version 0.0.4, and of how metrics are to be named, and from nothing of kiln's.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

struct PrometheusFamily {
    std::string type;
    std::string help;
    struct Sample {
        std::map<std::string, std::string> labels;
        double value = 0;
    };
    std::vector<Sample> samples;
};

class PrometheusPage {
  public:
    // Throws std::runtime_error, which names the line and what is wrong with it. Refused are, besides what
    // the format forbids: a family without HELP, TYPE or samples, a counter whose name does not end in
    // _total or whose value is negative or not finite, another family whose name does end so, a unit that is
    // no base unit, and a timestamp, which a collector of files does not take.
    explicit PrometheusPage(std::string_view text);

    [[nodiscard]] const std::map<std::string, PrometheusFamily>& families() const { return families_; }
    // The value of the sample that has exactly these labels; throws where there is none.
    [[nodiscard]] double at(const std::string& family,
                            const std::map<std::string, std::string>& labels = {}) const;
    // Over all samples of a family.
    [[nodiscard]] double sum(const std::string& family) const;

  private:
    std::map<std::string, PrometheusFamily> families_;
};

}  // namespace kiln::test
