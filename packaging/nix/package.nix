# Package for nixpkgs. From a clone:
#   nix-build -E '(import <nixpkgs> {}).callPackage ./packaging/nix/package.nix {}'
{
  lib,
  rustPlatform,
  installShellFiles,
}:

rustPlatform.buildRustPackage {
  pname = "rovelog";
  version = "0.1.0";

  src = lib.cleanSource ../..;
  cargoLock.lockFile = ../../Cargo.lock;

  buildAndTestSubdir = "crates/rovelog-cli";
  buildFeatures = [ "full" ];
  # The tests of the command line need the other crates of the workspace.
  doCheck = false;

  nativeBuildInputs = [ installShellFiles ];
  postInstall = ''
    $out/bin/rovelog man man
    installManPage man/*.1
    for shell in bash fish zsh; do
      $out/bin/rovelog completion $shell > rovelog.$shell
    done
    installShellCompletion rovelog.{bash,fish,zsh}
  '';

  meta = {
    description = "Reads, repairs and converts ULog, RLD, ROS 1 bag and VEL sensor logs";
    homepage = "https://github.com/rovelog/rovelog";
    license = [ lib.licenses.mit lib.licenses.asl20 ];
    mainProgram = "rovelog";
  };
}
