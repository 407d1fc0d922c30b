// What of this library the page uses, for `tsc --checkJs`. Written by hand.
declare const DOMPurify: { sanitize(html: string, options: Record<string, unknown>): string };
export default DOMPurify;
