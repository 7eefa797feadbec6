//! Policy for following HTTP redirects.
//!
//! By default, a redirect is followed only to the host and port that the user named, or from HTTP
//! to HTTPS on this host. If the user allows redirects to other hosts, a server on the internet
//! still must not redirect to an address that only this machine can reach (server-side request
//! forgery). For example, the metadata service of a cloud at `169.254.169.254` returns credentials.
//! So the target of a redirect must not be in a narrower network than the address that the user
//! gave.

use std::net::{IpAddr, Ipv6Addr, ToSocketAddrs as _};

use reqwest::redirect::Policy;
use url::{Host, Position, Url};

/// Maximum number of redirects that are followed for one request.
const MAX_REDIRECTS: usize = 10;

/// Set of machines that can reach an address. The variants are ordered from the widest set to the
/// narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// Any machine on the internet can reach the address.
    Public,
    /// Only this machine, or the machines of a private network, can reach the address.
    Private,
    /// Only the machines on the same network link can reach the address. A link-local address is
    /// also used by clouds to give credentials to a virtual machine.
    Link,
}

/// A redirect that is not followed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

/// Returns a policy for redirects. If `to_other_hosts` is false, only redirects within the original
/// host and port are followed. Redirects from HTTPS to HTTP or to a narrower network than that of
/// the original address are never followed.
pub(crate) fn policy(to_other_hosts: bool) -> Policy {
    Policy::custom(move |attempt| {
        let (from, to) = (attempt.previous().first().unwrap_or_else(|| attempt.url()), attempt.url());
        let last = attempt.previous().last().unwrap_or(from);
        // `port` is `None` for the standard port of the scheme. So the standard ports of HTTP and
        // HTTPS count as the same port.
        let is_same_host = from.host() == to.host() && from.port() == to.port();
        let refused = if attempt.previous().len() > MAX_REDIRECTS {
            "the server redirects too often".to_owned()
        } else if last.scheme() == "https" && to.scheme() != "https" {
            "the server redirects from https to another scheme".to_owned()
        } else if is_same_host {
            return attempt.follow();
        } else if !to_other_hosts {
            // The path and the query of the target may contain secrets, so they are not shown.
            format!(
                "the server redirects to another host, {}",
                &to[Position::BeforeHost..Position::AfterPort]
            )
        } else if reach(to) > reach(from) {
            "the server redirects to this machine or a private network".to_owned()
        } else {
            return attempt.follow();
        };
        attempt.error(Refused(refused))
    })
}

/// Returns the narrowest reach of all IP addresses to which the host of a URL resolves.
fn reach(url: &Url) -> Reach {
    match url.host() {
        Some(Host::Ipv4(address)) => ip_reach(address.into()),
        Some(Host::Ipv6(address)) => ip_reach(address.into()),
        Some(Host::Domain(name)) => {
            let port = url.port_or_known_default().unwrap_or(443);
            let addresses = (name, port).to_socket_addrs();
            // A name without an IP address counts as public. Connecting to it fails anyway.
            addresses
                .into_iter()
                .flatten()
                .map(|address| ip_reach(address.ip()))
                .max()
                .unwrap_or(Reach::Public)
        }
        None => Reach::Link,
    }
}

fn ip_reach(address: IpAddr) -> Reach {
    // `::ffff:10.0.0.1` is a private IPv4 address in IPv6 notation. Without this conversion, it
    // would count as public.
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
    fn reach_of_urls() {
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
