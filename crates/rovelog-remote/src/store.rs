//! The store behind an address, with its credentials, retries and time limits.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig,
};
use percent_encoding::percent_decode_str;
use url::Position;

use crate::address::Address;
use crate::error::RemoteError;
use crate::redirect;

/// How remote files are read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long a server may send nothing: 30 s.
    pub timeout: Duration,
    /// Most bytes that are moved in all; `None` for any number.
    pub max_bytes: Option<u64>,
    /// Credentials and settings of the store, as [`object_store`] names them; they win over those of
    /// the environment.
    pub storage: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), max_bytes: None, storage: Vec::new() }
    }
}

/// How often a request is repeated that the server does not answer.
pub(crate) const RETRIES: usize = 4;

/// Adds what all stores have to a builder: our settings, and those of the user.
macro_rules! built {
    ($builder:expr, $options:expr, $allow_http:expr) => {{
        let client = ClientOptions::new()
            .with_timeout_disabled()
            .with_connect_timeout($options.timeout)
            .with_allow_http($allow_http);
        let builder = $builder.with_client_options(client).with_retry(retries());
        let builder = $options.storage.iter().try_fold(builder, |builder, (key, value)| {
            let known = key.to_ascii_lowercase().parse();
            known.map(|known| builder.with_config(known, value)).map_err(bad)
        })?;
        Arc::new(builder.build().map_err(bad)?) as Arc<dyn ObjectStore>
    }};
}

/// Returns the store of an address, and the place of the file in it.
pub(crate) fn store(
    address: &Address,
    options: &Options,
) -> Result<(Arc<dyn ObjectStore>, Path), RemoteError> {
    let url = &address.url;
    let (scheme, path) = ObjectStoreScheme::parse(url).map_err(|_| RemoteError::BadAddress)?;
    let at = url.as_str();
    let store = match scheme {
        // A signed address has its credentials with it.
        _ if address.is_signed() => return Ok((web(address, options)?, whole_path(address)?)),
        ObjectStoreScheme::AmazonS3 => {
            built!(AmazonS3Builder::from_env().with_url(at), options, is_plain(options, "AWS_ENDPOINT"))
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            built!(GoogleCloudStorageBuilder::from_env().with_url(at), options, true)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            let plain = is_plain(options, "AZURE_STORAGE_ENDPOINT") || is_plain(options, "AZURE_ENDPOINT");
            built!(MicrosoftAzureBuilder::from_env().with_url(at), options, plain)
        }
        _ => return Ok((web(address, options)?, whole_path(address)?)),
    };
    Ok((store, path))
}

/// Returns the store of a web server.
fn web(address: &Address, options: &Options) -> Result<Arc<dyn ObjectStore>, RemoteError> {
    let mut url = address.url.clone();
    let text = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let user = (!url.username().is_empty() || url.password().is_some())
        .then(|| format!("{}:{}", text(url.username()), text(url.password().unwrap_or_default())));
    let added = Added {
        query: url.query().map(Arc::from),
        authorization: user.map(|user| format!("Basic {}", STANDARD.encode(user)).into()),
    };
    let connector = Connector { added, timeout: options.timeout };
    // Only addresses without a host cannot have a user, and these were refused.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let builder = HttpBuilder::new().with_url(&url[..Position::BeforePath]).with_http_connector(connector);
    Ok(built!(builder, options, url.scheme() == "http"))
}

fn whole_path(address: &Address) -> Result<Path, RemoteError> {
    Path::from_url_path(address.url.path()).map_err(|_| RemoteError::BadAddress)
}

/// Returns whether the endpoint that the user has set is not encrypted.
fn is_plain(options: &Options, name: &str) -> bool {
    let names = [name.to_owned(), format!("{name}_URL")];
    let set = options.storage.iter().filter(|(key, _)| {
        let key = key.to_ascii_uppercase();
        key.contains("ENDPOINT") && names.iter().any(|name| name.ends_with(&key))
    });
    let environment = names.iter().filter_map(|name| std::env::var(name).ok());
    let mut values = set.map(|(_, value)| value.clone()).chain(environment);
    values.any(|value| value.starts_with("http://"))
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(5),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: Duration::from_mins(1) }
}

/// An error of a builder: something is missing or wrong in the settings.
fn bad(error: object_store::Error) -> RemoteError {
    match RemoteError::from(error) {
        RemoteError::Failed { why } => RemoteError::BadOptions { why },
        other => other,
    }
}

/// What requests to a web server have in addition: the query of a signed address, and who asks.
#[derive(Clone)]
struct Added {
    query: Option<Arc<str>>,
    authorization: Option<Arc<str>>,
}

/// Secrets are not shown.
impl std::fmt::Debug for Added {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Added")
    }
}

/// Name of this program in requests.
const AGENT: &str = concat!("rovelog/", env!("CARGO_PKG_VERSION"));

/// Connects to a web server with these additions. The client is our own, for its rule of redirects.
#[derive(Debug)]
struct Connector {
    added: Added,
    /// How long connecting may take.
    timeout: Duration,
}

/// A client whose requests have them.
#[derive(Debug)]
struct Client {
    client: HttpClient,
    added: Added,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let value = |key: ClientConfigKey| options.get_config_value(&key);
        let is_set = |key: ClientConfigKey| value(key).is_some_and(|value| value == "true");
        let mut builder = reqwest::Client::builder()
            .user_agent(value(ClientConfigKey::UserAgent).unwrap_or_else(|| AGENT.to_owned()))
            .connect_timeout(self.timeout)
            .https_only(!is_set(ClientConfigKey::AllowHttp))
            .danger_accept_invalid_certs(is_set(ClientConfigKey::AllowInvalidCertificates))
            .redirect(redirect::policy());
        let failed = |error: reqwest::Error| object_store::Error::Generic {
            store: "HTTP",
            source: Box::new(error.without_url()),
        };
        if let Some(proxy) = value(ClientConfigKey::ProxyUrl) {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(failed)?);
        }
        let client = HttpClient::new(builder.build().map_err(failed)?);
        Ok(HttpClient::new(Client { client, added: self.added.clone() }))
    }
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if let Some(query) = &self.added.query
            && let Ok(uri) = format!("{}?{query}", request.uri()).parse()
        {
            *request.uri_mut() = uri;
        }
        if let Some(authorization) = &self.added.authorization
            && let Ok(value) = authorization.parse()
        {
            request.headers_mut().insert("authorization", value);
        }
        self.client.execute(request).await
    }
}
