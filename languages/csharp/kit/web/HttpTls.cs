using System;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using Mono.Security.Interface;
using Mono.Security.X509.Extensions;
using Wattwire;

/// TLS of both ends: that of Mono, whose library is BoringSSL.
static class HttpTls {
    const string AlternativeNames = "2.5.29.17"; // subjectAltName of RFC 5280

    /// A listener that shows the run's certificate.
    public static HttpListener Listener(Kit kit) => kit.Spec.TlsAuthority == ""
        ? new HttpListener()
        : MonoTlsProviderFactory.CreateHttpListener(
            Shown(kit.Spec.TlsCertificate, kit.Spec.TlsKey), null, null);

    /// Mono takes a key with its certificate only from PKCS #12, of the older ciphers.
    static X509Certificate2 Shown(string certificate, string key) {
        var start = new ProcessStartInfo("openssl", "pkcs12 -export -passout pass: -macalg sha1 " +
            "-keypbe PBE-SHA1-3DES -certpbe PBE-SHA1-3DES " +
            $"-in \"{certificate}\" -inkey \"{key}\"") {
            RedirectStandardOutput = true, UseShellExecute = false };
        var both = new MemoryStream();
        using (Process openssl = Process.Start(start)) {
            openssl.StandardOutput.BaseStream.CopyTo(both);
            openssl.WaitForExit();
            if (openssl.ExitCode != 0)
                throw new NodeError(ExitCode.MiddlewareFailed,
                    $"openssl pkcs12 -export: exit {openssl.ExitCode}");
        }
        return new X509Certificate2(both.ToArray(), "");
    }

    /// Has a client accept what the run's authority has signed for the endpoint's host.
    public static void Trust(Kit kit, HttpClientHandler handler) {
        if (kit.Spec.TlsAuthority == "")
            return;
        var trusted = new X509Certificate2(kit.Spec.TlsAuthority);
        var settings = new MonoTlsSettings {
            TrustAnchors = new X509CertificateCollection { trusted } };
        MonoTlsSettings.DefaultSettings = settings; // of all connections of this process
        handler.ServerCertificateCustomValidationCallback = (request, shown, _, errors) =>
            errors == SslPolicyErrors.None
            || errors == SslPolicyErrors.RemoteCertificateNameMismatch
                && IsFor(request.RequestUri.Host, shown) && IsSigned(shown, settings);
    }

    /// Mono compares a host with a certificate's DNS names only, and not with its addresses.
    static bool IsFor(string host, X509Certificate2 shown) {
        var names =
            new Mono.Security.X509.X509Certificate(shown.RawData).Extensions[AlternativeNames];
        return names != null && IPAddress.TryParse(host, out IPAddress address)
            && new SubjectAltNameExtension(names).IPAddresses.Contains(address.ToString());
    }

    /// A host that does not match ends Mono's checks early: here are all the others.
    static bool IsSigned(X509Certificate2 shown, MonoTlsSettings settings) {
        var alone = new X509CertificateCollection { shown };
        ValidationResult found = CertificateValidationHelper.GetValidator(settings)
            .ValidateCertificate(null, false, alone);
        return found.Trusted && !found.UserDenied;
    }
}
