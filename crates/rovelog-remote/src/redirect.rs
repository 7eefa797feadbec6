//! Which redirects are followed. A web server may send a log from another host, as download pages do,
//! but it must not lead to services of this machine or its network that only they can reach.

use std::net::{IpAddr, Ipv6Addr, ToSocketAddrs as _};

use reqwest::redirect::Policy;
use url::{Host, Url};

/// Maximum number of redirects of a request.
const MOST: usize = 10;

/// Reach of an address, the widest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// Any host.
    Public,
    /// This machine, or a private network.
    Private,
    /// The link of this machine: where clouds offer the credentials of a machine.
    Link,
}

/// Follows redirects that lead to no narrower network than the address that the user named, and from
/// HTTPS to HTTPS only.
pub(crate) fn policy() -> Policy {
    Policy::custom(|attempt| {
        let from = attempt.previous().first().unwrap_or_else(|| attempt.url());
        let refused = if attempt.previous().len() > MOST {
            "the server redirects too often"
        } else if from.scheme() == "https" && attempt.url().scheme() != "https" {
            "the server redirects from https to another scheme"
        } else if reach(attempt.url()) > reach(from) {
            "the server redirects to this machine or a private network"
        } else {
            return attempt.follow();
        };
        attempt.error(refused)
    })
}

fn reach(url: &Url) -> Reach {
    match url.host() {
        Some(Host::Ipv4(address)) => reach_of(address.into()),
        Some(Host::Ipv6(address)) => reach_of(address.into()),
        Some(Host::Domain(name)) => {
            let port = url.port_or_known_default().unwrap_or(443);
            let addresses = (name, port).to_socket_addrs();
            // The connection to a name without an address fails.
            addresses
                .into_iter()
                .flatten()
                .map(|address| reach_of(address.ip()))
                .max()
                .unwrap_or(Reach::Public)
        }
        None => Reach::Link,
    }
}

fn reach_of(address: IpAddr) -> Reach {
    match address.to_canonical() {
        IpAddr::V4(address) if address.is_link_local() || address.is_unspecified() => Reach::Link,
        IpAddr::V4(address) if address.is_private() || address.is_loopback() => Reach::Private,
        IpAddr::V6(address) if address.is_unicast_link_local() || address.is_unspecified() => Reach::Link,
        IpAddr::V6(address) if address.is_unique_local() || address == Ipv6Addr::LOCALHOST => Reach::Private,
        _ => Reach::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_reach() {
        for (url, expected) in [
            ("https://93.184.216.34/log", Reach::Public),
            ("http://169.254.169.254/latest/meta-data", Reach::Link),
            ("http://[fe80::1]/", Reach::Link),
            ("http://[::ffff:169.254.169.254]/", Reach::Link),
            ("http://0.0.0.0/", Reach::Link),
            ("http://127.0.0.1:8080/", Reach::Private),
            ("http://localhost/", Reach::Private),
            ("http://10.0.0.1/", Reach::Private),
            ("http://192.168.1.1/", Reach::Private),
            ("http://[fd00::1]/", Reach::Private),
            ("http://[2001:db8::1]/", Reach::Public),
        ] {
            assert_eq!(reach(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
