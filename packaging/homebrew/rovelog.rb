# Formula of the tap rovelog/homebrew-tap. The checksums come from SHA256SUMS of the release.
class Rovelog < Formula
  desc "Reads, repairs and converts ULog, RLD, ROS 1 bag and VEL sensor logs"
  homepage "https://github.com/rovelog/rovelog"
  version "0.1.0"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "https://github.com/rovelog/rovelog/releases/download/v#{version}/rovelog-#{version}-aarch64-apple-darwin.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
    on_intel do
      url "https://github.com/rovelog/rovelog/releases/download/v#{version}/rovelog-#{version}-x86_64-apple-darwin.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/rovelog/rovelog/releases/download/v#{version}/rovelog-#{version}-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
    on_intel do
      url "https://github.com/rovelog/rovelog/releases/download/v#{version}/rovelog-#{version}-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
  end

  def install
    bin.install "rovelog"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/rovelog.bash" => "rovelog"
    fish_completion.install "completions/rovelog.fish"
    zsh_completion.install "completions/_rovelog"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/rovelog --version")
    (testpath/"no.ulg").write "no log"
    assert_match "not", shell_output("#{bin}/rovelog info no.ulg 2>&1", 1)
  end
end
