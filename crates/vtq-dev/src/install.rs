//! The one command that installs PostgreSQL here.

use std::fs;

/// A sentence with the command for this system.
pub(crate) fn advice() -> String {
    let release = if cfg!(target_os = "macos") {
        "ID=macos".to_owned()
    } else {
        fs::read_to_string("/etc/os-release").unwrap_or_default()
    };
    match command_for(&release) {
        Some(command) if nix::unistd::geteuid().is_root() => {
            format!("install it with `{}`", command.trim_start_matches("sudo "))
        }
        Some(command) => format!("install it with `{command}`"),
        None => "install it from https://www.postgresql.org/download/".to_owned(),
    }
}

/// Reads an os-release(5) file: `ID` first, then what the system says it is like.
fn command_for(release: &str) -> Option<&'static str> {
    let field = |name: &str| {
        let value = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        Some(value.trim().trim_matches(['"', '\'']))
    };
    let ids = [field("ID"), field("ID_LIKE")];
    ids.into_iter().flatten().flat_map(str::split_whitespace).find_map(|id| match id {
        "debian" | "ubuntu" => Some("sudo apt-get install postgresql"),
        "fedora" | "rhel" | "centos" | "rocky" | "almalinux" | "amzn" => {
            Some("sudo dnf install postgresql-server")
        }
        "suse" | "opensuse" => Some("sudo zypper install postgresql-server"),
        "alpine" => Some("sudo apk add postgresql"),
        "arch" => Some("sudo pacman -S postgresql"),
        "nixos" => Some("nix-shell -p postgresql"),
        "macos" => Some("brew install postgresql@17"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_its_command() {
        let cases = [
            ("PRETTY_NAME=\"Debian\"\nID=debian\n", Some("sudo apt-get install postgresql")),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Some("sudo apt-get install postgresql")),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", Some("sudo dnf install postgresql-server")),
            (
                "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n",
                Some("sudo zypper install postgresql-server"),
            ),
            ("ID=alpine\n", Some("sudo apk add postgresql")),
            ("ID=manjaro\nID_LIKE=arch\n", Some("sudo pacman -S postgresql")),
            ("ID=plan9\n", None),
            ("", None),
        ];
        for (release, command) in cases {
            assert_eq!(command_for(release), command, "for {release:?}");
        }
    }
}
