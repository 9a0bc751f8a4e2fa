//! The password file, `~/.pgpass`: <https://www.postgresql.org/docs/current/libpq-pgpass.html>.

use std::fs;
use std::path::Path;

use super::settings::{Place, Secret, Target};

/// The file that is read when no other is named, if there is a home directory.
pub(crate) fn default_file() -> Option<String> {
    let file = std::env::home_dir()?.join(".pgpass");
    file.to_str().map(str::to_owned)
}

/// Finds the password for a target; a file that is absent, or that others may read, has none.
pub(crate) fn lookup(file: &Path, target: &Target, dbname: &str, user: &str) -> Option<Secret> {
    let details = fs::metadata(file).ok()?;
    if !details.is_file() {
        tracing::warn!(file = %file.display(), "password file is not a plain file: not used");
        return None;
    }
    if is_open_to_others(&details) {
        tracing::warn!(
            file = %file.display(),
            "password file has group or world access: not used; its permissions should be u=rw (0600) or less"
        );
        return None;
    }
    let bytes = fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (host, port) = (host_of(target), target.port.to_string());
    let wanted = [host.as_str(), &port, dbname, user];
    text.lines().find_map(|line| password_in(line, &wanted))
}

/// The name by which a target is listed. A Unix socket in one of the usual places is `localhost` there.
fn host_of(target: &Target) -> String {
    match &target.place {
        Place::Unix(Some(folder)) => {
            match super::dial::USUAL_SOCKET_FOLDERS.contains(&folder.to_str().unwrap_or("")) {
                true => "localhost".into(),
                false => folder.display().to_string(),
            }
        }
        Place::Tcp { host: Some(host), .. } => host.clone(),
        Place::Tcp { addr: Some(addr), .. } => addr.to_string(),
        Place::Unix(None) | Place::Tcp { .. } => "localhost".into(),
    }
}

/// Reads `host:port:database:user:password`, where `*` stands for any and a backslash escapes `:` and itself.
fn password_in(line: &str, wanted: &[&str; 4]) -> Option<Secret> {
    if line.starts_with('#') {
        return None;
    }
    let mut chars = line.trim_end_matches('\r').chars();
    for want in wanted {
        let (mut field, mut was_escaped, mut ended) = (String::new(), false, false);
        while let Some(c) = chars.next() {
            match c {
                ':' => {
                    ended = true;
                    break;
                }
                '\\' => {
                    was_escaped = true;
                    field.extend(chars.next());
                }
                c => field.push(c),
            }
        }
        let is_any = field == "*" && !was_escaped;
        if !ended || !(is_any || field == *want) {
            return None;
        }
    }
    let mut password = String::new();
    while let Some(c) = chars.next() {
        match c {
            '\\' => password.extend(chars.next()),
            c => password.push(c),
        }
    }
    Some(Secret(password)).filter(|password| !password.0.is_empty())
}

#[cfg(unix)]
fn is_open_to_others(details: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    details.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, wanted: [&str; 4]) -> Option<String> {
        password_in(line, &wanted).map(|secret| secret.0)
    }

    #[test]
    fn fields_match_by_value_or_star() {
        let wanted = ["db", "5432", "shop", "ann"];

        for line in ["db:5432:shop:ann:pw", "*:*:*:*:pw", "db:*:shop:*:pw", "*:5432:*:ann:pw\r"] {
            assert_eq!(found(line, wanted).as_deref(), Some("pw"), "{line}");
        }
        for line in
            ["", "#*:*:*:*:pw", "db2:5432:shop:ann:pw", "*:*:*", "*:*:*:*:", r"\*:*:*:*:pw", "*:*:*:*"]
        {
            assert_eq!(found(line, wanted), None, "{line}");
        }
    }

    #[test]
    fn escapes_in_fields_and_password() {
        assert_eq!(found(r"\:\:1:*:*:*:a\:b\\c:d", ["::1", "1", "x", "y"]).as_deref(), Some(r"a:b\c:d"));
    }

    #[cfg(unix)]
    #[test]
    fn file_that_others_may_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        let target = Target { place: Place::Unix(None), port: 5432 };
        fs::write(&file, "# hosts\nother:*:*:*:no\nlocalhost:5432:*:ann:pw\n").unwrap();

        for (mode, expected) in [(0o600, Some("pw")), (0o640, None), (0o604, None), (0o400, Some("pw"))] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();

            let password = lookup(&file, &target, "shop", "ann").map(|secret| secret.0);

            assert_eq!(password.as_deref(), expected, "mode {mode:o}");
        }
        assert_eq!(lookup(&folder.path().join("absent"), &target, "shop", "ann"), None);
    }
}
