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

/// TLS of both ends, by Mono on BoringSSL.
static class HttpTls {
    const string AlternativeNames = "2.5.29.17"; // subjectAltName of RFC 5280

    /// Returns a listener that presents the run's certificate.
    public static HttpListener Listener(Kit kit) => kit.Spec.TlsAuthority == ""
        ? new HttpListener()
        : MonoTlsProviderFactory.CreateHttpListener(
            WithKey(kit.Spec.TlsCertificate, kit.Spec.TlsKey), null, null);

    /// Returns the certificate with its key. Mono reads both only from PKCS #12 with older ciphers.
    static X509Certificate2 WithKey(string certificate, string key) {
        var start = new ProcessStartInfo("openssl", "pkcs12 -export -passout pass: -macalg sha1 " +
            "-keypbe PBE-SHA1-3DES -certpbe PBE-SHA1-3DES " +
            $"-in \"{certificate}\" -inkey \"{key}\"") {
            RedirectStandardOutput = true, UseShellExecute = false };
        var pkcs12 = new MemoryStream();
        using (Process openssl = Process.Start(start)) {
            openssl.StandardOutput.BaseStream.CopyTo(pkcs12);
            openssl.WaitForExit();
            if (openssl.ExitCode != 0)
                throw new NodeError(ExitCode.MiddlewareFailed,
                    $"openssl pkcs12 -export: exit code {openssl.ExitCode}");
        }
        return new X509Certificate2(pkcs12.ToArray(), "");
    }

    /// Makes a client trust only certificates that the run's authority signed for the endpoint's
    /// host.
    public static void Trust(Kit kit, HttpClientHandler handler) {
        if (kit.Spec.TlsAuthority == "")
            return;
        var trusted = new X509Certificate2(kit.Spec.TlsAuthority);
        var settings = new MonoTlsSettings {
            TrustAnchors = new X509CertificateCollection { trusted } };
        MonoTlsSettings.DefaultSettings = settings; // applies to all connections of this process
        handler.ServerCertificateCustomValidationCallback = (request, certificate, _, errors) =>
            errors == SslPolicyErrors.None
            || errors == SslPolicyErrors.RemoteCertificateNameMismatch
                && IsFor(request.RequestUri.Host, certificate) && IsSigned(certificate, settings);
    }

    /// Returns whether the certificate has the host's address; Mono compares only DNS names.
    static bool IsFor(string host, X509Certificate2 certificate) {
        var extensions = new Mono.Security.X509.X509Certificate(certificate.RawData).Extensions;
        var names = extensions[AlternativeNames];
        return names != null && IPAddress.TryParse(host, out IPAddress address)
            && new SubjectAltNameExtension(names).IPAddresses.Contains(address.ToString());
    }

    /// Makes all other checks; Mono skips them if the host does not match.
    static bool IsSigned(X509Certificate2 certificate, MonoTlsSettings settings) {
        var chain = new X509CertificateCollection { certificate };
        ValidationResult result = CertificateValidationHelper.GetValidator(settings)
            .ValidateCertificate(null, false, chain);
        return result.Trusted && !result.UserDenied;
    }
}
