//! Connects to the server of an address, with credentials, retries and timeouts.

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

/// Options for reading and writing remote files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Maximum time to wait until the server sends data. The default is 30 s.
    pub timeout: Duration,
    /// Maximum number of bytes to download for each file. `None` means that there is no limit.
    pub max_bytes: Option<u64>,
    /// True to follow redirects of a web server to other hosts.
    pub follow_redirects: bool,
    /// Credentials and settings of the store. They have the names that [`object_store`] uses, such
    /// as `aws_region`. They override the environment variables.
    pub storage: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        let timeout = Duration::from_secs(30);
        Self { timeout, max_bytes: None, follow_redirects: false, storage: Vec::new() }
    }
}

/// Number of times that a failed request is repeated.
const RETRIES: usize = 4;

/// Applies the settings of this crate and of the user to the builder of a store, and builds the
/// store. This is a macro, because the builders have no common trait.
macro_rules! build_store {
    ($builder:expr, $options:expr, $allow_http:expr) => {{
        // `with_timeout` would limit the time of a whole download, which may take hours. The
        // functions in `wait` limit the time of each response instead.
        let client = ClientOptions::new()
            .with_timeout_disabled()
            .with_connect_timeout($options.timeout)
            .with_allow_http($allow_http);
        let builder = $builder.with_client_options(client).with_retry(retries());
        let builder = $options.storage.iter().try_fold(builder, |builder, (key, value)| {
            let key = key.to_ascii_lowercase().parse();
            key.map(|key| builder.with_config(key, value)).map_err(options_error)
        })?;
        Arc::new(builder.build().map_err(options_error)?) as Arc<dyn ObjectStore>
    }};
}

/// Returns the store for an address, and the path of the file in this store.
pub(crate) fn store(
    address: &Address,
    options: &Options,
) -> Result<(Arc<dyn ObjectStore>, Path), RemoteError> {
    let url = &address.url;
    let (scheme, path) = ObjectStoreScheme::parse(url).map_err(|_| RemoteError::BadAddress)?;
    let url_text = url.as_str();
    let store = match scheme {
        // The query of a presigned URL contains the credentials. So the URL is requested like a
        // page of a web server, without any other credentials.
        _ if address.is_signed() => return Ok((web_store(address, options)?, web_path(address)?)),
        ObjectStoreScheme::AmazonS3 => {
            let allow_http = uses_plain_http(options, "AWS_ENDPOINT");
            build_store!(AmazonS3Builder::from_env().with_url(url_text), options, allow_http)
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            build_store!(GoogleCloudStorageBuilder::from_env().with_url(url_text), options, true)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            let allow_http = uses_plain_http(options, "AZURE_STORAGE_ENDPOINT")
                || uses_plain_http(options, "AZURE_ENDPOINT");
            build_store!(MicrosoftAzureBuilder::from_env().with_url(url_text), options, allow_http)
        }
        _ => return Ok((web_store(address, options)?, web_path(address)?)),
    };
    Ok((store, path))
}

/// Returns the store for a web server.
fn web_store(address: &Address, options: &Options) -> Result<Arc<dyn ObjectStore>, RemoteError> {
    let mut url = address.url.clone();
    let decode = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let user = (!url.username().is_empty() || url.password().is_some())
        .then(|| format!("{}:{}", decode(url.username()), decode(url.password().unwrap_or_default())));
    let secrets = Secrets {
        query: url.query().map(Arc::from),
        authorization: user.map(|user| format!("Basic {}", STANDARD.encode(user)).into()),
    };
    let connector =
        Connector { secrets, timeout: options.timeout, follow_redirects: options.follow_redirects };
    // `set_username` and `set_password` fail only if the URL has no host. Such a URL cannot contain
    // a user or a password.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let builder = HttpBuilder::new().with_url(&url[..Position::BeforePath]).with_http_connector(connector);
    Ok(build_store!(builder, options, url.scheme() == "http"))
}

/// Returns the path of the file on a web server, without the query.
fn web_path(address: &Address) -> Result<Path, RemoteError> {
    Path::from_url_path(address.url.path()).map_err(|_| RemoteError::BadAddress)
}

/// Returns true if the user has configured an endpoint that starts with `http://`, such as a server
/// in the local network. Unencrypted connections are allowed only in this case. `name` is the name
/// of the environment variable without the suffix `_URL`.
fn uses_plain_http(options: &Options, name: &str) -> bool {
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

/// Converts an error that occurred while building a store. The cause is a setting that is missing
/// or invalid.
fn options_error(error: object_store::Error) -> RemoteError {
    match RemoteError::from(error) {
        RemoteError::Failed { why } => RemoteError::BadOptions { why },
        other => other,
    }
}

/// Secret parts of an address, which are added to every request to a web server.
#[derive(Clone)]
struct Secrets {
    /// Query of a presigned URL.
    query: Option<Arc<str>>,
    /// Value of the HTTP header `Authorization`.
    authorization: Option<Arc<str>>,
}

/// Prints no content, so that secrets cannot appear in messages.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

/// Value of the HTTP header `User-Agent`.
const AGENT: &str = concat!("rovelog/", env!("CARGO_PKG_VERSION"));

/// Creates HTTP clients for a web server. The client of [`object_store`] cannot be used, because
/// its policy for redirects cannot be changed.
#[derive(Debug)]
struct Connector {
    secrets: Secrets,
    /// Maximum time to establish a connection to the server.
    timeout: Duration,
    /// True to follow redirects to other hosts.
    follow_redirects: bool,
}

/// An HTTP client that adds the secret parts of the address to each request.
#[derive(Debug)]
struct Client {
    client: HttpClient,
    secrets: Secrets,
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
            .redirect(redirect::policy(self.follow_redirects));
        let failed = |error: reqwest::Error| object_store::Error::Generic {
            store: "HTTP",
            source: Box::new(error.without_url()),
        };
        if let Some(proxy) = value(ClientConfigKey::ProxyUrl) {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(failed)?);
        }
        let client = HttpClient::new(builder.build().map_err(failed)?);
        Ok(HttpClient::new(Client { client, secrets: self.secrets.clone() }))
    }
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if let Some(query) = &self.secrets.query
            && let Ok(uri) = format!("{}?{query}", request.uri()).parse()
        {
            *request.uri_mut() = uri;
        }
        if let Some(authorization) = &self.secrets.authorization
            && let Ok(value) = authorization.parse()
        {
            request.headers_mut().insert("authorization", value);
        }
        self.client.execute(request).await
    }
}
