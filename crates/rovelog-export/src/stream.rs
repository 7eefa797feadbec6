//! Compressed video and audio in ROS messages. Nothing is decoded: the payloads of a topic, written
//! one after the other, are the stream that the encoder produced.

use rovelog::Value;
use rovelog::core::internal::media::ImageFormat;

/// Part of a stream that one message contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'a> {
    /// Bytes of the stream.
    pub bytes: &'a [u8],
    /// Extension of a file with the stream, such as `h264`.
    pub extension: &'static str,
    /// True if the stream is audio.
    pub is_audio: bool,
}

impl Payload<'_> {
    /// Returns whether the payload continues a stream of the same topic whose file has this
    /// extension. Only the first payload of an audio stream has a header that states its format.
    pub fn continues(&self, extension: &str) -> bool {
        self.is_audio || self.extension == extension
    }
}

/// Returns whether messages of the ROS type `type_name` are parts of a video or audio stream. Messages
/// of the type `sensor_msgs/CompressedImage` may be images or parts of a video.
pub fn is_stream(type_name: &str) -> bool {
    is_audio(type_name)
        || ["foxglove_msgs/CompressedVideo", "sensor_msgs/CompressedImage"].contains(&type_name)
}

fn is_audio(type_name: &str) -> bool {
    ["audio_common_msgs/AudioData", "audio_common_msgs/AudioDataStamped"].contains(&type_name)
}

/// Returns the part of a stream that a message contains. Returns `None` if the message contains
/// something else, such as an image, or a video in an unknown format.
pub fn payload<'a>(type_name: &str, value: &'a Value) -> Option<Payload<'a>> {
    if !is_stream(type_name) {
        return None;
    }
    let Value::Bytes(bytes) = value.get("audio").unwrap_or(value).get("data")? else { return None };
    let is_audio = is_audio(type_name);
    let extension = if is_audio {
        audio_extension(bytes)
    } else if ImageFormat::of(bytes).is_some() {
        return None;
    } else {
        video_extension(value.get("format")?.as_str()?)?
    };
    Some(Payload { bytes, extension, is_audio })
}

/// Returns the extension of a video file by the format that the message states.
fn video_extension(format: &str) -> Option<&'static str> {
    let format = format.to_ascii_lowercase();
    let formats = [("h264", "h264"), ("h265", "h265"), ("hevc", "h265"), ("vp9", "vp9"), ("av1", "obu")];
    formats.into_iter().find(|(name, _)| format.contains(name)).map(|(_, extension)| extension)
}

/// Returns the extension of an audio file by its first bytes. Samples without a header have the
/// extension `raw`.
fn audio_extension(bytes: &[u8]) -> &'static str {
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "wav",
        [b'O', b'g', b'g', b'S', ..] => "ogg",
        [b'f', b'L', b'a', b'C', ..] => "flac",
        [b'I', b'D', b'3', ..] => "mp3",
        // Header of a frame of MPEG Layer III. The other two conditions exclude invalid headers,
        // because samples may start with the same two bytes.
        [0xff, version, rates, ..]
            if version & 0xe6 == 0xe2 && !matches!(rates >> 4, 0 | 15) && rates & 0x0c != 0x0c =>
        {
            "mp3"
        }
        _ => "raw",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(type_name: &str, format: &str, data: &[u8]) -> Option<&'static str> {
        let data = Value::Bytes(data.to_vec());
        let value = if type_name.ends_with("Stamped") {
            Value::record([("audio", Value::record([("data", data)]))])
        } else {
            Value::record([("format", Value::Text(format.to_owned())), ("data", data)])
        };
        assert!(is_stream(type_name), "{type_name}");
        payload(type_name, &value).map(|payload| payload.extension)
    }

    #[test]
    fn videos_are_found_by_their_format_unless_the_data_is_an_image() {
        let image = |format, data: &[u8]| found("sensor_msgs/CompressedImage", format, data);
        assert_eq!(image("h264", b"\0\0\0\x01\x67"), Some("h264"));
        assert_eq!(image("yuv420p; HEVC", b"\0\0\0\x01\x40"), Some("h265"));
        assert_eq!(image("h264", b"\xff\xd8\xff\xe0"), None);
        assert_eq!(image("jpeg", b"hello"), None);
        assert_eq!(found("foxglove_msgs/CompressedVideo", "av1", b"\x12\0"), Some("obu"));
    }

    #[test]
    fn audio_is_named_by_its_content() {
        let audio = |data: &[u8]| found("audio_common_msgs/AudioData", "", data).unwrap();
        assert_eq!(audio(b"RIFF\x24\0\0\0WAVEfmt "), "wav");
        assert_eq!(audio(b"\xff\xfb\x90\xc4"), "mp3");
        assert_eq!(audio(b"\xff\xff\x00\x00"), "raw");
        assert_eq!(audio(b""), "raw");
        assert_eq!(found("audio_common_msgs/AudioDataStamped", "", b"OggS\0"), Some("ogg"));
    }
}
