# Installs the program rovelog from the archives of a release, for Windows:
#
#   irm https://raw.githubusercontent.com/rovelog/rovelog/main/packaging/install.ps1 | iex
#
# ROVELOG_VERSION   version to install, such as 0.1.0; default: the latest release
# ROVELOG_PREFIX    folder of the program; default: %LOCALAPPDATA%\rovelog
& {
    $ErrorActionPreference = 'Stop'
    $releases = 'https://github.com/rovelog/rovelog/releases'
    $version = $env:ROVELOG_VERSION
    if (-not $version) {
        $latest = Invoke-RestMethod -UseBasicParsing 'https://api.github.com/repos/rovelog/rovelog/releases/latest'
        $version = $latest.tag_name.TrimStart('v')
    }
    $arch = if ($env:PROCESSOR_ARCHITECTURE -eq 'ARM64') { 'aarch64' } else { 'x86_64' }
    $archive = "rovelog-$version-$arch-pc-windows-msvc.zip"
    $folder = if ($env:ROVELOG_PREFIX) { $env:ROVELOG_PREFIX } else { Join-Path $env:LOCALAPPDATA 'rovelog' }
    $temporary = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid())
    New-Item -ItemType Directory $temporary | Out-Null
    try {
        foreach ($file in $archive, 'SHA256SUMS') {
            Invoke-WebRequest -UseBasicParsing "$releases/download/v$version/$file" -OutFile (Join-Path $temporary $file)
        }
        $line = Select-String -Path (Join-Path $temporary 'SHA256SUMS') -SimpleMatch "  $archive"
        $found = (Get-FileHash (Join-Path $temporary $archive) -Algorithm SHA256).Hash
        if (-not $line -or $line.Line.Split(' ')[0] -ne $found) { throw "the checksum of $archive is wrong" }
        Expand-Archive (Join-Path $temporary $archive) $temporary
        New-Item -ItemType Directory -Force $folder | Out-Null
        $program = Get-ChildItem $temporary -Recurse -Filter rovelog.exe | Select-Object -First 1
        Copy-Item $program.FullName $folder -Force
        "installed $(& (Join-Path $folder 'rovelog.exe') --version | Select-Object -First 1) in $folder"
        if (($env:PATH -split ';') -notcontains $folder) { 'add this folder to PATH to call it by its name' }
    } finally {
        Remove-Item -Recurse -Force $temporary
    }
}
